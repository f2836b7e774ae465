// Collects points run by run, then looks for steps.
#include "reports/statistics/history.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reports/statistics/estimates.h"
#include "reports/statistics/labels.h"

namespace decodelab {
namespace {

constexpr std::string_view kCounterPrefix = "counters.";
constexpr const char* kCountedSteps = "counted_steps";

using Value = std::optional<double> (*)(const SummaryRow& row);

template <auto Member>
std::optional<double> member(const SummaryRow& row) {
  const auto& value = row.*Member;
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

enum class Noise { none, of_times, of_contrasts };

struct Metric {
  const char* name;
  Value value;
  Noise noise;
};

constexpr Metric kMetrics[] = {{"mean_ns", member<&SummaryRow::cell_mean_ns>, Noise::of_times},
                               {"median_ns", member<&SummaryRow::median_ns>, Noise::of_times},
                               {"min_ns", member<&SummaryRow::min_ns>, Noise::of_times},
                               {"p90_ns", member<&SummaryRow::p90_ns>, Noise::of_times},
                               {"p95_ns", member<&SummaryRow::p95_ns>, Noise::of_times},
                               {"p99_ns", member<&SummaryRow::p99_ns>, Noise::of_times},
                               {"time_ratio", member<&SummaryRow::time_ratio>, Noise::of_contrasts},
                               {"bound_share", member<&SummaryRow::bound_share>, Noise::of_times},
                               {"peak_bytes", member<&SummaryRow::peak_bytes>, Noise::none}};

const Metric* metric_named(const std::string& name) {
  const auto* const found = std::ranges::find_if(kMetrics, [&](const Metric& metric) { return metric.name == name; });
  return found == std::end(kMetrics) ? nullptr : found;
}

std::optional<double> counter_of(const SummaryRow& row, const std::string& name) {
  const auto steps = row.counters.find(kCountedSteps);
  if (steps == row.counters.end() || steps->second <= 0) {
    return std::nullopt;
  }
  const auto found = row.counters.find(name);
  return found == row.counters.end() ? 0.0 : static_cast<double>(found->second) / static_cast<double>(steps->second);
}

std::optional<double> spread(const std::vector<double>& logs) {
  return logs.size() < 2 ? std::nullopt : std::optional(standard_deviation(logs));
}

/// Returns the standard deviation between blocks: of the mean log time of the arm in a block, or of its contrast.
std::optional<double> deviation_of(const RunData& data, const SummaryRow& row, Noise noise) {
  std::vector<double> logs;
  if (noise == Noise::of_contrasts) {
    for (const BlockContrast& block : row.comparison.blocks) {
      logs.push_back(block.contrast);
    }
    return spread(logs);
  }
  for (const BlockRecord& block : data.blocks) {
    if (block.cell_id != row.cell.id) {
      continue;
    }
    std::vector<double> visits;
    for (const VisitRecord& visit : block.visits) {
      if (visit.arm_id == row.arm.id && !visit.samples_ns.empty()) {
        visits.push_back(std::log(visit_statistic(visit.samples_ns)));
      }
    }
    if (!visits.empty()) {
      logs.push_back(mean(visits));
    }
  }
  return spread(logs);
}

std::string machine_of(const MachineRecord& machine) {
  return fmt::format("{}, {} cores{}{}", machine.cpu, machine.cores, machine.accelerator.empty() ? "" : ", ",
                     machine.accelerator);
}

/// Returns the key of a series: points belong to one series where all of this is equal.
std::string key_of(const RunData& data, const SummaryRow& row) {
  const CellRecord& cell = row.cell;
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", row.arm.label, cell_label(cell), cell.dtype, cell.device,
                     cell.threads, cell.scope, cell.fill, machine_of(data.run.machine), data.run.model.name);
}

[[noreturn]] void nothing_found(const char* flag, const std::string& asked, const std::set<std::string>& known) {
  throw std::invalid_argument(fmt::format("{} '{}': no finished run has it; there {} {}", flag, asked,
                                          known.size() == 1 ? "is" : "are",
                                          known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
}

}  // namespace

std::int64_t HistorySeries::steps() const { return std::ranges::count_if(points, &HistoryPoint::step); }

std::vector<std::string> history_metrics() {
  std::vector<std::string> names;
  for (const Metric& metric : kMetrics) {
    names.emplace_back(metric.name);
  }
  return names;
}

void find_steps(HistorySeries& series) {
  std::vector<double> deviations;
  for (const HistoryPoint& point : series.points) {
    if (point.deviation) {
      deviations.push_back(*point.deviation);
    }
  }
  series.threshold = deviations.empty() ? 0 : kStepDeviations * median(deviations);
  std::vector<double> since{};
  const auto side = [&](double value, double level) {
    const double share = level != 0 ? value / level - 1 : value == 0 ? 0 : INFINITY;
    return share > series.threshold ? 1 : share < -series.threshold ? -1 : 0;
  };
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    HistoryPoint& point = series.points[i];
    if (since.empty()) {
      since.push_back(point.value);
      continue;
    }
    const double level = median(since);
    if (level != 0) {
      point.change = point.value / level - 1;
    }
    const int direction = side(point.value, level);
    if (direction != 0) {
      const std::size_t left = series.points.size() - i;
      bool holds = left >= kStepPoints;
      for (std::size_t next = i + 1; holds && next < i + kStepPoints; ++next) {
        holds = side(series.points[next].value, level) == direction;
      }
      point.step = holds;
      point.open = left < kStepPoints;
      if (!holds) {
        continue;  // an outlier is no part of the level
      }
      since.clear();
    }
    since.push_back(point.value);
  }
}

std::vector<HistorySeries> history_of(std::span<const RunData> runs, const HistoryRequest& request) {
  const bool counter = request.metric.starts_with(kCounterPrefix);
  const Metric* const metric = metric_named(request.metric);
  if (!counter && metric == nullptr) {
    throw std::invalid_argument(fmt::format("metric '{}': expected one of {}, or counters.NAME", request.metric,
                                            fmt::join(history_metrics(), ", ")));
  }
  std::vector<const RunData*> ordered;
  for (const RunData& data : runs) {
    if (data.run.ended_unix_ns != 0) {
      ordered.push_back(&data);
    }
  }
  std::ranges::stable_sort(ordered, {}, [](const RunData* data) { return data->run.started_unix_ns; });
  std::vector<HistorySeries> series;
  std::map<std::string, std::size_t> index;
  std::set<std::string> arms;
  std::set<std::string> cells;
  for (const RunData* data : ordered) {
    for (const SummaryRow& row : summarize(*data).rows) {
      arms.insert(row.arm.label);
      cells.insert(cell_label(row.cell));
      const bool ratio = metric != nullptr && metric->noise == Noise::of_contrasts;
      const bool chosen =
          request.arm.empty() ? row.arm.baseline != ratio && !row.arm.roofline() : row.arm.label == request.arm;
      if (!chosen || (!request.cell.empty() && cell_label(row.cell) != request.cell) || !row.comparable()) {
        continue;
      }
      const auto value = counter ? counter_of(row, request.metric.substr(kCounterPrefix.size())) : metric->value(row);
      if (!value || !std::isfinite(*value)) {
        continue;
      }
      const auto [place, added] = index.try_emplace(key_of(*data, row), series.size());
      if (added) {
        series.push_back({.arm = row.arm.label,
                          .cell = row.cell,
                          .machine = machine_of(data->run.machine),
                          .model = data->run.model.name,
                          .points = {}});
      }
      series[place->second].points.push_back({.run_id = data->run.id,
                                              .cell_id = row.cell.id,
                                              .run_name = data->run.name,
                                              .commit = data->run.build.commit,
                                              .started_unix_ns = data->run.started_unix_ns,
                                              .value = *value,
                                              .deviation = counter || metric->noise == Noise::none
                                                               ? std::nullopt
                                                               : deviation_of(*data, row, metric->noise),
                                              .change = std::nullopt});
    }
  }
  if (!request.arm.empty() && !arms.contains(request.arm)) {
    nothing_found("--arm", request.arm, arms);
  }
  if (!request.cell.empty() && !cells.contains(request.cell)) {
    nothing_found("--cell", request.cell, cells);
  }
  for (HistorySeries& one : series) {
    find_steps(one);
  }
  return series;
}

}  // namespace decodelab
