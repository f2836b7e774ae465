// Formatting of ratios, and labels of cells.
#include "reports/statistics/labels.h"

#include <fmt/format.h>

#include "base/units.h"

namespace decodelab {
namespace {

constexpr double kTenfold = 9;  // as a share: ten times is 900 % more
constexpr double kLargestRatio = 1000;

}  // namespace

std::string format_detectable(double share) { return share > kTenfold ? "none" : format_percent(share); }

std::string format_ratio(double ratio) {
  if (ratio > kLargestRatio) return fmt::format("over {:.0f}", kLargestRatio);
  if (ratio < 1 / kLargestRatio) return fmt::format("under {}", 1 / kLargestRatio);
  return fmt::format("{:.4f}", ratio);
}

std::string format_ratio(const SummaryRow& row) {
  if (!row.time_ratio) return "";
  if (row.arm.baseline) return "1";
  if (!row.time_ratio_low) return fmt::format("{} {}", format_ratio(*row.time_ratio), kThisProcessOnly);
  return fmt::format("{} [{}, {}]", format_ratio(*row.time_ratio), format_ratio(*row.time_ratio_low),
                     format_ratio(*row.time_ratio_high));
}

std::string cell_label(const CellRecord& cell) {
  if (cell.phase == "prefill") return fmt::format("b{} pp{}", cell.batch, cell.length);
  return fmt::format("b{} {} @ d{}", cell.batch, cell.phase == "decode" ? "tg" : "gen", cell.length);
}

std::string setting_label(const CellRecord& cell) {
  const std::string fill = cell.fill == "random" ? "" : fmt::format(", {} fill", cell.fill);
  return fmt::format("{}, {}, {} thread{}, scope {}{}", cell.dtype, cell.device, cell.threads,
                     cell.threads == 1 ? "" : "s", cell.scope, fill);
}

}  // namespace decodelab
