// Ratios and cells as people read them; cells as llama-bench users name them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reports/statistics/summary.h"

namespace decodelab {

/// Returns a detectable effect as per cent; `none` where not even a tenfold difference could be told from noise.
std::string format_detectable(double share);
/// Returns a ratio as `0.7123`, with four digits behind the point, since an effect of 0.1 % is worth showing. Returns
/// `over 1000` above 1000 and `under 0.001` below 0.001: such ends of intervals come from very few launches and say
/// only that the interval is wide.
std::string format_ratio(double ratio);
/// Returns `0.816 [0.785, 0.849]`, with as many digits as show two digits of the interval's half-width, or `0.82 this
/// process only` without an interval.
std::string format_ratio(double ratio, const std::optional<Interval>& interval);
/// Returns the same for a row; `1` for the baseline, empty where there is no ratio.
std::string format_ratio(const SummaryRow& row);
/// Returns a time ratio as a change of the time: `18 % less`, `0.4 % more`, `2.5 times`. Shows a digit fewer than
/// format_ratio().
std::string format_change(double ratio, const std::optional<Interval>& interval);
/// Returns `b4 pp512`, `b4 tg @ d4096` (decode with 4096 keys held at the first timed step), `b4 gen @ d4096`.
std::string cell_label(const CellRecord& cell);
/// Returns what all rows of a table must share, apart from batch and length: `bf16, cpu, 8 threads, scope step`.
std::string setting_label(const CellRecord& cell);

}  // namespace decodelab
