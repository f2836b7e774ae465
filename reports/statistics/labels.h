// Ratios and cells as people read them; cells as llama-bench users name them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reports/statistics/summary.h"

namespace decodelab {

/// An effect that a run could have seen, as per cent; `none` where not even a tenfold one could be told from noise.
std::string format_detectable(double share);
/// `0.7123`: four digits behind the point, since an effect of 0.1 % is worth telling; `over 1000` above that, and
/// `under 0.001` below, where an interval of very few launches has no meaning but its width.
std::string format_ratio(double ratio);
/// `0.816 [0.785, 0.849]`: as many digits as the interval supports, two of its half-width. `0.82 this process only`
/// without one.
std::string format_ratio(double ratio, const std::optional<Interval>& interval);
/// The same of a row; `1` for the baseline, empty where there is no ratio.
std::string format_ratio(const SummaryRow& row);
/// Time that is less or more, as a share of what it was: `18 % less`, `0.4 % more`, `2.5 times`; a digit fewer than of
/// a ratio.
std::string format_change(double ratio, const std::optional<Interval>& interval);
/// `b4 pp512`, `b4 tg @ d4096` (decode with 4096 keys held at the first timed step), `b4 gen @ d4096`.
std::string cell_label(const CellRecord& cell);
/// What all rows of a table must share, apart from batch and length: `bf16, cpu, 8 threads, scope step`.
std::string setting_label(const CellRecord& cell);

}  // namespace decodelab
