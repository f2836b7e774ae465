// Writes the first sentence of each report: the result, before how it was found.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "profiles/trace/names.h"
#include "profiles/trace/text.h"
#include "profiles/trace/words.h"

namespace decodelab {
namespace {

constexpr std::size_t kLongestName = 40;
/// A relative difference below this is too small for a step's time to show.
constexpr double kNoDifference = 0.0005;

std::string length_text(double ns) {
  const double magnitude = std::abs(ns);
  if (magnitude < 1e4) {
    return fmt::format("{:.0f} ns", ns);
  }
  if (magnitude < 1e6) {
    return fmt::format("{:.1f} us", ns * 1e-3);
  }
  return fmt::format("{:.{}f} ms", ns * 1e-6, magnitude < 1e7 ? 2 : 1);
}

std::string shortened_name(const std::string& name) {
  return printable(name.size() <= kLongestName ? name : name.substr(0, kLongestName - 3) + "...");
}

std::string of_device(const Trace& trace, const Attribution& account, double step_ns) {
  std::int64_t busy_ns = 0;
  std::array<std::int64_t, kGapCauseNames.size()> gaps{};
  for (const StepAccount& step : account.steps) {
    busy_ns += step.busy_ns;
    for (std::size_t i = 0; i < gaps.size(); ++i) {
      gaps[i] += step.gap_ns[i];
    }
  }
  const auto share = [&](std::int64_t ns) {
    return percent_text(static_cast<double>(ns) / static_cast<double>(account.steps_ns));
  };
  std::map<std::string, std::int64_t> names;
  for (const OperatorCost& cost : account.kernels) {
    names[short_name(trace.text(cost.name))] += cost.self_ns;
  }
  const auto top =
      std::max_element(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string text = account.steps.size() == 1
                         ? fmt::format("The GPU was busy for {} of {}", share(busy_ns), length_text(step_ns))
                         : fmt::format("A step takes {} (mean of {}), and the GPU is busy for {} of it",
                                       length_text(step_ns), account.steps.size(), share(busy_ns));
  if (top != names.end()) {
    text += fmt::format(": most with {} ({})", shortened_name(top->first), share(top->second));
  }
  const auto gap = std::max_element(gaps.begin(), gaps.end());
  if (*gap > 0) {
    text += fmt::format("; idle longest for {} ({})", kGapCauseNames[static_cast<std::size_t>(gap - gaps.begin())],
                        share(*gap));
  }
  return text + ".";
}

/// Returns the row that changed most, or null where none changed.
const DifferenceRow* largest(const std::vector<DifferenceRow>& rows) {
  const auto found = std::max_element(rows.begin(), rows.end(), [](const DifferenceRow& a, const DifferenceRow& b) {
    return std::abs(a.delta_ns) < std::abs(b.delta_ns);
  });
  return found == rows.end() || found->delta_ns == 0 ? nullptr : &*found;
}

}  // namespace

std::string verdict_sentence(const TraceQuality& quality) {
  switch (quality.verdict) {
    case TraceVerdict::ok: return "The trace can be believed.";
    case TraceVerdict::warn: return "The trace can be believed, with a warning.";
    case TraceVerdict::contaminated: return "The trace ranks kernels only: tracing slowed the steps down.";
    case TraceVerdict::partial: return fmt::format("The trace can be believed in part: {}.", quality.believe);
    case TraceVerdict::broken: return "The trace cannot be believed.";
    case TraceVerdict::untraced: return "Nothing was traced.";
  }
  return "";
}

std::string account_sentence(const Trace& trace, const TraceQuality& quality, const Attribution& account) {
  if (!account.believable || account.steps.empty()) {
    return quality.verdict == TraceVerdict::broken || quality.verdict == TraceVerdict::untraced
               ? verdict_sentence(quality)
               : "There is no account of this trace.";
  }
  const double step_ns = static_cast<double>(account.steps_ns) / static_cast<double>(account.steps.size());
  if (account.on_device) {
    return of_device(trace, account, step_ns);
  }
  return fmt::format("A step takes {} (mean of {}); most of it is {}.", length_text(step_ns), account.steps.size(),
                     account.bound_by == "residual" ? "in no stage" : "in " + account.bound_by);
}

std::string difference_sentence(const TraceDifference& moved, const std::string& a, const std::string& b) {
  if (!moved.refusal.empty()) {
    return fmt::format("{} and {} cannot be compared.", a, b);
  }
  const double share = moved.a_step_ns > 0 ? static_cast<double>(moved.delta_ns) / moved.a_step_ns : 0;
  const std::string times = fmt::format("({} to {})", length_text(moved.a_step_ns), length_text(moved.b_step_ns));
  std::string text = std::abs(share) < kNoDifference
                         ? fmt::format("A step of {} takes as long as one of {} {}", b, a, times)
                         : fmt::format("A step of {} takes {:.1f} % {} time than one of {} {}", b,
                                       100 * std::abs(share), share < 0 ? "less" : "more", a, times);
  const bool stages = std::ranges::any_of(moved.stages, [](const DifferenceRow& row) {
    return row.kind == ShareKind::operation && row.stage != Stage::other;
  });
  if (const DifferenceRow* row = largest(stages ? moved.stages : moved.operations)) {
    text += fmt::format("; most moved: {} by {}{}", shortened_name(place_text(*row)), row->delta_ns > 0 ? "+" : "",
                        length_text(static_cast<double>(row->delta_ns)));
  }
  return text + ".";
}

}  // namespace decodelab
