// Totals of both sides a step, sorted by the size of the change.
#include "reports/figures/moved_counters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/units.h"
#include "reports/figures/bound.h"

namespace decodelab {
namespace {

struct Total {
  const char* counter;
  const char* name;
  bool bytes = false;
};

// Counters of whole steps, as bench/measure names them.
constexpr std::array kTotals{Total{"operators", "operators"},
                             Total{"allocations", "allocations"},
                             Total{"allocated_bytes", "allocated", true},
                             Total{"copied_cache_bytes", "copied cache", true},
                             Total{"kernel_launches", "kernels"},
                             Total{"graph_launches", "graph launches"},
                             Total{"synchronizations", "synchronizations"},
                             Total{"lm_head_rows", "head rows"},
                             Total{"padding_keys", "padding keys"}};
constexpr double kLeastChange = 0.02;
constexpr std::size_t kMostCounters = 2;

std::string value_text(const Total& total, double value) {
  return total.bytes ? format_bytes(std::llround(value)) : fmt::format("{:.4g}", value);
}

}  // namespace

std::string moved_counters(const SummaryRow& baseline, const SummaryRow& row) {
  if (baseline.counters.empty() || row.counters.empty()) {
    return "";
  }
  std::vector<std::pair<double, std::string>> changes;
  for (const Total& total : kTotals) {
    // A counter that is 0 is absent.
    const double before = per_step(baseline, total.counter).value_or(0);
    const double after = per_step(row, total.counter).value_or(0);
    if (std::abs(after - before) <= kLeastChange * std::max(before, after)) {
      continue;
    }
    const double size = before > 0 && after > 0 ? std::abs(std::log(after / before)) : INFINITY;
    changes.emplace_back(
        size, fmt::format("{} {} \xe2\x86\x92 {}", total.name, value_text(total, before), value_text(total, after)));
  }
  std::ranges::stable_sort(changes, std::greater<>(), [](const auto& change) { return change.first; });
  std::string text;
  for (std::size_t i = 0; i < std::min(changes.size(), kMostCounters); ++i) {
    text += (i == 0 ? "" : ", ") + changes[i].second;
  }
  return text;
}

}  // namespace decodelab
