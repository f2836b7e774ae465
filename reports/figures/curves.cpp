// Units and data of curves.
#include "reports/figures/curves.h"

#include <algorithm>
#include <cmath>

#include "reports/figures/figure_style.h"

namespace decodelab {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLogarithmicFrom =
    8;  // where the largest value is this often the smallest, a linear axis hides the small ones
constexpr double kPadding = 0.06;  // share by which an axis extends beyond its values

}  // namespace

std::vector<std::int64_t> batches_of(const FigureRows& rows) {
  std::vector<std::int64_t> batches;
  for (const SummaryRow* row : rows.rows) {
    batches.push_back(row->cell.batch);
  }
  std::sort(batches.begin(), batches.end());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  return batches;
}

std::vector<double> plotted_lengths(const FigureRows& rows) {
  std::vector<double> lengths;
  for (const SummaryRow* row : rows.rows) {
    lengths.push_back(row->plotted_length());
  }
  return lengths;
}

void TimeRange::add(double value) {
  if (!(value > 0) || !std::isfinite(value)) {
    return;
  }
  low = empty() ? value : std::min(low, value);
  high = std::max(high, value);
}

bool TimeRange::wide() const { return high > kLogarithmicFrom * low; }

TimeRange TimeRange::padded() const {
  if (wide()) {
    const double factor = std::pow(high / low, kPadding);
    return {low / factor, high * factor};
  }
  const double margin = high > low ? kPadding * (high - low) : kPadding * high;
  return {std::max(low - margin, low / 2), high + margin};
}

Json curve_datum(const SummaryRow& row, const PhaseWords& words) {
  Json datum{{"cell", row.cell.id},
             {"arm", row.arm.label},
             {"batch", row.cell.batch},
             {"length", row.cell.length},
             {"x", shortened(row.plotted_length())}};
  const auto set = [&](const char* key, const std::optional<double>& value, double divisor = 1) {
    if (value && std::isfinite(*value)) {
      datum[key] = shortened(*value / divisor);
    }
  };
  set("mean", row.cell_mean_ns, words.unit_ns);
  if (row.cell_mean_ns) {
    datum["launches"] = row.launches;
    datum["steps"] = row.steps;
  }
  if (const auto& interval = row.cell_mean_interval_ns) {
    add_ends(datum, *interval, words.unit_ns);
  }
  set("bound_share", row.bound_share);
  if (row.time_ratio && !row.arm.baseline) {
    set("ratio", row.time_ratio);
    set("ratio_low", row.time_ratio_low);
    set("ratio_high", row.time_ratio_high);
  }
  if (row.status != RowStatus::ok) {
    datum["status"] = to_string(row.status);
    datum["reason"] = row.reason;
  }
  return datum;
}

Json curve_tooltip(const PhaseWords& words) {
  return {{{"field", "arm"}},
          {{"field", "batch"}},
          {{"field", "length"}},
          {{"field", "mean"}, {"title", words.unit}, {"format", ".4~r"}},
          {{"field", "low"}, {"title", "95 % from"}, {"format", ".4~r"}},
          {{"field", "high"}, {"title", "95 % to"}, {"format", ".4~r"}},
          {{"field", "launches"}},
          {{"field", "steps"}},
          {{"field", "bound_share"}, {"title", "share of bound"}, {"format", ".0%"}},
          {{"field", "ratio"}, {"title", "time ratio"}, {"format", ".4f"}},
          {{"field", "ratio_low"}, {"title", "ratio from"}, {"format", ".4f"}},
          {{"field", "ratio_high"}, {"title", "ratio to"}, {"format", ".4f"}}};
}

}  // namespace decodelab
