// What `decodelab trace` says of a trace: its verdict, where the time of its steps went, and what tracing cost.
#pragma once

#include "profiles/trace/attribution.h"
#include "profiles/trace/quality.h"
#include "profiles/trace/trace.h"
#include "reports/page/table.h"
#include "reports/store/record.h"

#include <string>
#include <vector>

namespace decodelab {

/// "ok: 12 checks passed, 6 not applicable", or the verdict and its reason.
std::string verdict_line(const TraceQuality& quality);

/// A row for each check.
Table check_table(const TraceQuality& quality);

/// A row for each stage and the residual, per step; with a device also what it was busy with, and the gaps by cause. For an account
/// that is refused one note, and no number.
Table stage_table(const Trace& trace, const Attribution& attribution);

/// The operators or kernels with most time, `most` of them.
Table operator_table(const Trace& trace, const Attribution& attribution, std::size_t most);

/// "tracing makes a step 1.012 times as long [1.008, 1.016], 40 pairs of visits"; that it was not measured, where it was not.
std::string perturbation_line(const Perturbation& perturbation);

/// Endings of the files that a trace can be written to; the ending chooses the format.
std::vector<std::string> trace_endings();
/// Throws std::invalid_argument that names the flag for a path with none of them.
void check_trace_path(const std::string& flag, const std::string& path);

/// How a person looks at the file, by its ending.
std::string how_to_open(const std::string& path);

/// The account as the store keeps it; without `cell_id` and `arm_id`.
TraceRecord trace_record(const Trace& trace, const TraceQuality& quality, const Attribution& attribution);

}  // namespace decodelab
