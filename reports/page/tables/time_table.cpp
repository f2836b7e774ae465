// Words and shares of what launches spent.
#include "reports/page/tables/time_table.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace decodelab {
namespace {

/// In the order of Activity.
constexpr std::array<const char*, kActivities> kWords{"loading weights",  "packing weights", "starting workers",
                                                      "checking outputs", "counting steps",  "filling caches",
                                                      "warm-up",          "timed steps",     "other work"};

constexpr double kSmallestShare = 0.0005;

double share(const TimeUse& use, std::size_t activity) {
  const std::int64_t total = use.total();
  return total > 0 ? static_cast<double>(use.ns[activity]) / static_cast<double>(total) : 0;
}

std::string percent(double value) { return value < kSmallestShare ? "" : fmt::format("{:.1f} %", 100 * value); }

}  // namespace

const char* activity_words(Activity activity) { return kWords.at(static_cast<std::size_t>(activity)); }

std::string time_use_words(const TimeUse& use) {
  constexpr auto kTiming = static_cast<std::size_t>(Activity::timing);
  constexpr auto kWarming = static_cast<std::size_t>(Activity::warming);
  std::vector<std::size_t> order{kTiming, kWarming};
  std::vector<std::size_t> others;
  for (std::size_t activity = 0; activity < kActivities; ++activity) {
    if (activity != kTiming && activity != kWarming) {
      others.push_back(activity);
    }
  }
  std::ranges::stable_sort(others, std::greater<>(), [&](std::size_t activity) { return use.ns[activity]; });
  order.insert(order.end(), others.begin(), others.end());
  std::string words;
  for (const std::size_t activity : order) {
    const std::string part = percent(share(use, activity));
    if (!part.empty()) {
      words += fmt::format("{}{} {}", words.empty() ? "" : ", ", part, kWords[activity]);
    }
  }
  return words;
}

std::string time_use_label(const ArmTimeUse& arm) { return arm.arm.empty() ? "shared by all arms" : arm.arm; }

Table time_table(const RunSummary& summary) {
  Table table{.title = "Where the time went",
              .columns = {{"Arm"}, {"Seconds", true}},
              .rows = {},
              .notes = {"Shares of the arm's own seconds. Shared by all arms: what launches do for all of them, the "
                        "reference where it is no arm, and the start and end of processes."}};
  for (const char* const words : kWords) {
    table.columns.push_back({words, true});
  }
  const auto add = [&](const std::string& label, const TimeUse& use) {
    std::vector<std::string> fields{label, fmt::format("{:.1f}", static_cast<double>(use.total()) * 1e-9)};
    for (std::size_t activity = 0; activity < kActivities; ++activity) {
      fields.push_back(percent(share(use, activity)));
    }
    table.rows.push_back({summary.run.id, 0, std::move(fields)});
  };
  for (const ArmTimeUse& arm : time_use_by_arm(summary.times_spent, summary.arms)) {
    add(time_use_label(arm), arm.use);
  }
  if (table.rows.size() > 1) {
    add("the whole run", time_use(summary.times_spent));
  }
  return table;
}

}  // namespace decodelab
