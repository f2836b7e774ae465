// Formatting of ratios, and labels of cells.
#include "reports/statistics/labels.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/units.h"
#include "reports/statistics/batching_scope.h"

namespace decodelab {
namespace {

constexpr double kTenfold = 9;  // as a share: ten times is 900 % more
constexpr double kLargestRatio = 1000;
constexpr int kFewestRatioDigits = 2;  // behind the point
constexpr int kMostRatioDigits = 4;
constexpr int kMostChangeDigits = 5;
constexpr double kTimesFrom = 2;  // from this ratio on, a change is written as `2.5 times`

// Digits behind the point that show two digits of an interval's half-width.
int digits_of(const std::optional<Interval>& interval, int most) {
  const double half = interval ? (interval->high - interval->low) / 2 : 1;
  if (!(half > 0)) {
    return interval ? most : kFewestRatioDigits;
  }
  return std::clamp(1 - static_cast<int>(std::floor(std::log10(half))), kFewestRatioDigits, most);
}

}  // namespace

std::string format_detectable(double share) { return share > kTenfold ? "none" : format_percent(share); }

std::string format_ratio(double ratio) {
  if (ratio > kLargestRatio) {
    return fmt::format("over {:.0f}", kLargestRatio);
  }
  if (ratio < 1 / kLargestRatio) {
    return fmt::format("under {}", 1 / kLargestRatio);
  }
  return fmt::format("{:.4f}", ratio);
}

std::string format_ratio(double ratio, const std::optional<Interval>& interval) {
  if (ratio > kLargestRatio || ratio < 1 / kLargestRatio) {
    return format_ratio(ratio);
  }
  const int digits = digits_of(interval, kMostRatioDigits);
  if (!interval) {
    return fmt::format("{:.{}f} {}", ratio, digits, kThisProcessOnly);
  }
  const auto side = [&](double value) {
    return value > kLargestRatio || value < 1 / kLargestRatio ? format_ratio(value)
                                                              : fmt::format("{:.{}f}", value, digits);
  };
  return fmt::format("{:.{}f} [{}, {}]", ratio, digits, side(interval->low), side(interval->high));
}

std::string format_ratio(const SummaryRow& row) {
  if (!row.time_ratio) {
    return "";
  }
  if (row.arm.baseline) {
    return "1";
  }
  return format_ratio(*row.time_ratio, row.time_ratio_interval());
}

std::string format_change(double ratio, const std::optional<Interval>& interval) {
  const int digits = digits_of(interval, kMostChangeDigits);
  if (ratio >= kTimesFrom) {
    return fmt::format("{:.{}f} times", ratio, digits - 1);
  }
  const double percent = 100 * std::abs(ratio - 1);
  const int behind = std::max(digits - 3, percent < 1 ? 1 : 0);
  return fmt::format("{:.{}f} % {}", percent, behind, ratio < 1 ? "less" : "more");
}

std::string cell_label(const CellRecord& cell) {
  if (cell.phase == Phase::prefill) {
    return fmt::format("b{} pp{}", cell.batch, cell.length);
  }
  if (cell.phase == Phase::batching) {
    const BatchingScope scope = batching_scope_from_string(cell.scope);
    const std::string sample = to_string(BatchingScope{.sample = scope.sample, .limits = scope.limits});
    return fmt::format("b{} {} @ p{}{}", cell.batch, sample, cell.length,
                       scope.request_rate > 0 ? fmt::format(", {}/s", scope.request_rate) : "");
  }
  const char* const what = cell.phase == Phase::decode ? "tg" : cell.phase == Phase::continuation ? "cont" : "gen";
  return fmt::format("b{} {} @ d{}", cell.batch, what, cell.length);
}

std::string setting_label(const CellRecord& cell) {
  const std::string fill = cell.fill == "random" ? "" : fmt::format(", {} fill", cell.fill);
  // Cells of phase batching say what is timed in their labels.
  const std::string scope = cell.phase == Phase::batching ? "batching" : cell.scope;
  return fmt::format("{}, {}, {} thread{}, scope {}{}", cell.dtype, cell.device, cell.threads,
                     cell.threads == 1 ? "" : "s", scope, fill);
}

}  // namespace decodelab
