// What the subcommands of `decodelab trace` share: files by their endings, the account as the store keeps it, and
// counted bytes.
#pragma once

#include <string>

#include "bench/measure/engine_bytes.h"
#include "profiles/trace/attribution.h"
#include "profiles/trace/quality.h"
#include "profiles/trace/trace.h"
#include "reports/store/record.h"

namespace decodelab {

/// Throws std::invalid_argument that names the flag for a file whose ending stands for no format, or whose folder is
/// not there.
void check_trace_path(const std::string& flag, const std::string& path);

/// Writes the trace in the format of the path's ending; `.summary.json` is the account without the rows.
void write_trace_file(const Trace& trace, const TraceQuality& quality, const Attribution& attribution,
                      const std::string& path);

/// Returns how a person opens the file, by its ending.
std::string how_to_open(const std::string& path);

/// Returns a table of counted beside modelled bytes, or the sentence why there is none.
std::string bytes_text(const CountedBytes& counted);

/// Returns the account as the store keeps it, without `cell_id` and `arm_id`.
TraceRecord trace_record(const Trace& trace, const TraceQuality& quality, const Attribution& attribution);

}  // namespace decodelab
