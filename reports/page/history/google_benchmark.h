// A run in the JSON of google-benchmark, for tools that read it, such as its own tools/compare.py.
#pragma once

#include <string>
#include <string_view>

#include "reports/store/record.h"

namespace decodelab {

/// Returns a JSON object with `context` and `benchmarks[]`: an entry of run type `iteration` for each visit, then mean,
/// median, stddev and cv of them.
///
/// The name is `decode/batch:4/length:64/ARM`; where `only_arm` is given, the entries are of that arm and its label is
/// left out, so that two arms, or two runs of an arm, can be compared by name. `real_time` is the visit statistic in
/// ns; `cpu_time` is the same number, since readers demand it and decodelab measures wall time only. Rows without times
/// have no entry, since tools that read the format fail on one; `context.not_measured` names them. Throws
/// std::invalid_argument where the run has no such arm.
std::string to_google_benchmark(const RunData& data, std::string_view only_arm);

}  // namespace decodelab
