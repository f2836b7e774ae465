// Means of logarithms over cells, and differences of them.
#include "reports/figures/effects.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "reports/statistics/labels.h"

namespace decodelab {

LaunchLogs difference(const LaunchLogs& a, const LaunchLogs& b) {
  LaunchLogs result;
  for (const auto& [launch, value] : a) {
    if (const auto other = b.find(launch); other != b.end()) {
      result[launch] = value - other->second;
    }
  }
  return result;
}

std::optional<RatioEstimate> ratio_of(const LaunchLogs& logs) {
  if (logs.empty()) {
    return std::nullopt;
  }
  std::vector<double> values;
  for (const auto& [launch, value] : logs) {
    values.push_back(value);
  }
  RatioEstimate estimate{.time_ratio = std::exp(mean(values)), .interval = std::nullopt};
  if (const auto interval = mean_interval(values)) {
    estimate.interval = {std::exp(interval->low), std::exp(interval->high)};
  }
  return estimate;
}

ArmEffects arm_effects(std::span<const SummaryRow* const> rows) {
  ArmEffects effects;
  std::map<std::string, std::set<std::int64_t>> cells_of;
  std::string baseline;
  for (const SummaryRow* row : rows) {
    if (row->arm.baseline) {
      baseline = row->arm.label;
    }
    if (row->time_ratio && !row->arm.baseline) {
      cells_of[row->arm.label].insert(row->cell.id);
    }
  }
  std::size_t most = 0;
  for (const auto& [arm, cells] : cells_of) {
    most = std::max(most, cells.size());
  }
  std::optional<std::set<std::int64_t>> common;
  for (const auto& [arm, cells] : cells_of) {
    if (2 * cells.size() < most) {
      effects.left_out.push_back(arm);
      continue;
    }
    effects.logs[arm];
    if (!common) {
      common = cells;
    }
    std::erase_if(*common, [&](std::int64_t id) { return !cells.contains(id); });
  }
  if (!common || common->empty()) {
    return {};
  }
  std::map<std::string, std::map<std::int64_t, std::vector<double>>> values;
  std::set<std::int64_t> named;
  for (const SummaryRow* row : rows) {
    if (!common->contains(row->cell.id)) {
      continue;
    }
    if (named.insert(row->cell.id).second) {
      effects.cells.push_back(cell_label(row->cell));
    }
    if (row->arm.baseline || !effects.logs.contains(row->arm.label)) {
      continue;
    }
    for (const auto& [launch, contrast] : mean_contrasts(row->comparison)) {
      values[row->arm.label][launch].push_back(contrast);
    }
  }
  for (const auto& [arm, launches] : values) {
    for (const auto& [launch, contrasts] : launches) {
      // The mean of a launch that lacks a cell would be over other cells than the means of other launches.
      if (contrasts.size() != common->size()) {
        continue;
      }
      effects.logs[arm][launch] = mean(contrasts);
      effects.logs[baseline][launch] = 0;
    }
  }
  std::erase_if(effects.logs, [](const auto& entry) { return entry.second.empty(); });
  return effects;
}

ArmParts arm_parts(const std::string& label) {
  ArmParts parts;
  std::size_t from = 0;
  while (from <= label.size()) {
    std::size_t to = label.find(',', from);
    // A comma within the parameters of a switch does not end it.
    while (to != std::string::npos && to + 1 < label.size() && label[to + 1] != '+' && label[to + 1] != '-') {
      to = label.find(',', to + 1);
    }
    const std::string part = label.substr(from, to == std::string::npos ? to : to - from);
    if (from == 0) {
      parts.base = part;
    } else {
      parts.switches.push_back(part);
    }
    if (to == std::string::npos) {
      break;
    }
    from = to + 1;
  }
  return parts;
}

}  // namespace decodelab
