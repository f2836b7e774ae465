// Whether a trace that was written and read again is the same one (check I14), for those who write files.
#pragma once

#include "profiles/trace/events.h"
#include "profiles/trace/quality.h"

#include <cstdint>
#include <string>
#include <vector>

namespace decodelab {

/// What of a trace a format can hold; what it cannot is not compared.
struct ComparedParts {
  bool spans = true;
  bool api_calls = true;
  bool operations = true;
  bool waits = true;
  bool overheads = true;
  bool counters = true;
  bool steps = true;
  /// Stamps that a format rounds: sums of durations may differ by this much for each row.
  std::int64_t rounding_ns = 0;
};

/// One sentence for each difference, empty if there is none: counts, sums of durations, flows from calls to operations, and the texts
/// that rows use. Orders of rows and ids of texts may differ.
std::vector<std::string> compare_events(const TraceEvents& written, const TraceEvents& read,
                                        const ComparedParts& parts = {});

/// I14 as a check, from the differences.
TraceCheck round_trip_check(const std::vector<std::string>& differences);

/// I15 as a check: `errors` are what the reader of a file said, such as non-zero error statistics.
TraceCheck importer_check(const std::vector<std::string>& errors);

}  // namespace decodelab
