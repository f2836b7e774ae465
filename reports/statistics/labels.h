// Ratios and cells as people read them; cells as llama-bench users name them.
#pragma once

#include <cstdint>
#include <string>

#include "reports/statistics/summary.h"

namespace decodelab {

/// An effect that a run could have seen, as per cent; `none` where not even a tenfold one could be told from noise.
std::string format_detectable(double share);
/// `0.7123`: four digits behind the point, since an effect of 0.1 % is worth telling; `over 1000` above that, and
/// `under 0.001` below, where an interval of very few launches has no meaning but its width.
std::string format_ratio(double ratio);
/// `0.7123 [0.7051, 0.7196]`, or the ratio and `this process only` where there is no interval.
std::string format_ratio(const SummaryRow& row);
/// `b4 pp512`, `b4 tg @ d4096` (decode with 4096 keys held at the first timed step), `b4 gen @ d4096`.
std::string cell_label(const CellRecord& cell);
/// What all rows of a table must share, apart from batch and length: `bf16, cpu, 8 threads, scope step`.
std::string setting_label(const CellRecord& cell);

}  // namespace decodelab
