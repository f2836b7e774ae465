// Puts the effects of arms into sentences.
#include "reports/page/tables/answer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "reports/statistics/estimates.h"
#include "reports/statistics/labels.h"
#include "reports/statistics/time_use.h"
#include "reports/statistics/verdict.h"

namespace decodelab {
namespace {

constexpr std::size_t kMostEffects = 3;  // in the answer; the table has all
constexpr double kSecondsShown = 90;     // longer times are shown in minutes

/// Returns the words with a capital where they begin with "no"; names of arms stay as they are.
std::string sentence(std::string words) {
  if (words.starts_with("no ")) {
    words.front() = 'N';
  }
  return words;
}

std::string cells_words(std::int64_t cells) { return fmt::format("{} cell{}", cells, cells == 1 ? "" : "s"); }

bool shows_a_difference(const Effect& effect) {
  return !effect.interval || effect.interval->low > 1 || effect.interval->high < 1;
}

/// Returns the geometric mean of the ratios of some cells, as the tables of a page show it.
template <typename Cell>
double mean_ratio(const std::vector<const Cell*>& cells) {
  std::vector<double> logs;
  for (const Cell* cell : cells) {
    logs.push_back(std::log(*cell->time_ratio));
  }
  return std::exp(mean(logs));
}

template <typename Cell>
std::vector<std::pair<std::string, double>> phases_of(const std::vector<const Cell*>& cells) {
  std::map<Phase, std::vector<const Cell*>> by_phase;
  for (const Cell* cell : cells) {
    by_phase[cell->cell.phase].push_back(cell);
  }
  std::vector<std::pair<std::string, double>> phases;
  for (const auto& [phase, of_phase] : by_phase) {
    phases.emplace_back(to_string(phase), mean_ratio(of_phase));
  }
  return phases.size() > 1 ? phases : std::vector<std::pair<std::string, double>>();
}

std::string arms_with(const RunSummary& summary, const char* words, bool (*holds)(const SummaryRow&)) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> counts;  // rows that hold, all rows
  for (const SummaryRow& row : summary.rows) {
    auto& [held, all] = counts[row.arm.label];
    held += holds(row) ? 1 : 0;
    ++all;
  }
  std::vector<std::string> parts;
  for (const auto& [arm, count] : counts) {
    if (count.first > 0) {
      parts.push_back(fmt::format("{} {} in {} of {}", arm, words, count.first, cells_words(count.second)));
    }
  }
  return parts.empty() ? "" : fmt::format("{}: no time is compared there. ", fmt::join(parts, ", "));
}

/// Returns "about 2 min more", computed from the time that the launches took so far; empty where that is not known.
std::string more_time(const RunSummary& summary, std::int64_t more) {
  const auto spent = static_cast<double>(time_use(summary.times_spent).total());
  if (spent <= 0 || summary.run.launches <= 0) {
    return "";
  }
  const double seconds = spent / kNsOfASecond / static_cast<double>(summary.run.launches) * static_cast<double>(more);
  return seconds < kSecondsShown ? fmt::format("about {:.0f} s more: ", std::max(seconds, 1.0))
                                 : fmt::format("about {:.0f} min more: ", seconds / kSecondsOfAMinute);
}

std::size_t cell_contrasts(const RunSummary& summary) {
  return static_cast<std::size_t>(std::ranges::count_if(
      summary.rows, [](const SummaryRow& row) { return row.time_ratio && !row.arm.baseline && !row.arm.roofline(); }));
}

/// Says what the verdict is, or what it still needs.
std::string verdict_words(const RunSummary& summary, const std::vector<Effect>& effects, const std::string& store) {
  std::map<std::string, std::int64_t> verdicts;
  for (const SummaryRow& row : summary.rows) {
    if (row.decision.verdict && !row.arm.baseline) {
      ++verdicts[to_string(*row.decision.verdict)];
    }
  }
  const std::int64_t needed = launches_needed(summary);
  if (summary.run.launches < needed) {
    return fmt::format("Not a verdict yet: {} launch{}, {} needed ({}`decodelab sweep --resume {}{} --launches {}`).",
                       summary.run.launches, summary.run.launches == 1 ? "" : "es", needed,
                       more_time(summary, needed - summary.run.launches), summary.run.id,
                       store.empty() ? "" : " --store " + store, needed);
  }
  std::vector<std::string> parts;
  for (const auto& [verdict, count] : verdicts) {
    parts.push_back(fmt::format("{} in {}", verdict, count));
  }
  const std::string together =
      effects.size() == 1 && effects.front().cells > 1 && effects.front().verdict
          ? fmt::format("{} over all cells; of single cells ", to_string(*effects.front().verdict))
          : "";
  return parts.empty() ? "No row has a verdict; the notes say why."
                       : fmt::format("Verdict: {}{} of {}.", together, fmt::join(parts, ", "), cell_contrasts(summary));
}

}  // namespace

std::int64_t launches_needed(const RunSummary& summary) {
  return static_cast<std::int64_t>(launches_for_verdict(cell_contrasts(summary) + summary.composites.size()));
}

std::string effect_words(const Effect& effect) {
  const std::string rest =
      fmt::format("(time ratio {}, {})", format_ratio(effect.time_ratio, effect.interval), cells_words(effect.cells));
  if (effect.verdict == Verdict::same) {
    return fmt::format("{} takes as long as {}, within {} {}", effect.arm, effect.baseline, format_percent(kSameMargin),
                       rest);
  }
  if (!shows_a_difference(effect)) {
    return fmt::format("no difference between {} and {} was resolved {}", effect.arm, effect.baseline, rest);
  }
  const std::string change = format_change(effect.time_ratio, effect.interval);
  std::string text = change.ends_with("times")
                         ? fmt::format("{} takes {} the time of {} {}", effect.arm, change, effect.baseline, rest)
                         : fmt::format("{} takes {} time than {} {}", effect.arm, change, effect.baseline, rest);
  for (const auto& [phase, ratio] : effect.phases) {
    text += fmt::format("{} {} {}", &phase == &effect.phases.front().first ? ":" : ",", phase,
                        format_change(ratio, effect.interval));
  }
  return text;
}

std::vector<Effect> effects_of(const RunSummary& summary) {
  std::vector<Effect> effects;
  for (const ArmRecord& arm : summary.arms) {
    if (arm.baseline || arm.roofline()) {
      continue;
    }
    std::vector<const SummaryRow*> rows;
    for (const SummaryRow& row : summary.rows) {
      if (row.arm.id == arm.id && row.time_ratio) {
        rows.push_back(&row);
      }
    }
    if (rows.empty()) {
      continue;
    }
    Effect effect{.arm = arm.label,
                  .baseline = summary.baseline(),
                  .cells = std::ssize(rows),
                  .time_ratio = *rows.front()->time_ratio,
                  .interval = rows.front()->time_ratio_interval(),
                  .verdict = rows.front()->decision.verdict,
                  .phases = phases_of(rows)};
    const auto composite = std::ranges::find(summary.composites, arm.id, [](const Composite& c) { return c.arm.id; });
    if (composite != summary.composites.end()) {
      effect.cells = composite->cells;
      effect.time_ratio = composite->time_ratio;
      effect.interval = composite->interval;
      effect.verdict = composite->decision.verdict;
    }
    effects.push_back(std::move(effect));
  }
  std::ranges::stable_sort(effects, std::greater<>(),
                           [](const Effect& effect) { return std::abs(std::log(effect.time_ratio)); });
  return effects;
}

std::string answer_of(const RunSummary& summary, const std::string& store) {
  std::string text = arms_with(summary, "puts out other tokens than the reference",
                               [](const SummaryRow& row) { return row.status == RowStatus::incorrect; });
  text += arms_with(summary, "did not run its variants", [](const SummaryRow& row) { return row.engaged == false; });
  const std::vector<Effect> effects = effects_of(summary);
  if (effects.empty()) {
    const bool alone =
        std::ranges::none_of(summary.arms, [](const ArmRecord& arm) { return !arm.baseline && !arm.roofline(); });
    return text + (alone ? "One arm was measured, and compared with no other."
                         : "No arm was compared with a baseline: no cell has times of both.");
  }
  for (std::size_t i = 0; i < std::min(effects.size(), kMostEffects); ++i) {
    text += i == 0 ? sentence(effect_words(effects[i])) : "; " + effect_words(effects[i]);
  }
  const std::size_t more = effects.size() - std::min(effects.size(), kMostEffects);
  text += more > 0 ? fmt::format("; {} more arm{} in the table. ", more, more == 1 ? " stands" : "s stand") : ". ";
  return text + verdict_words(summary, effects, store);
}

std::string answer_of(const std::vector<ComparedCell>& cells, bool one_run) {
  std::vector<std::string> parts;
  std::map<std::pair<std::string, std::string>, std::vector<const ComparedCell*>> pairs;
  for (const ComparedCell& cell : cells) {
    if (cell.time_ratio) {
      pairs[{cell.arm, cell.baseline_arm}].push_back(&cell);
    }
  }
  for (const auto& [pair, of_pair] : pairs) {
    const auto& [arm, baseline] = pair;
    const auto counted = [&](auto side) {
      return std::ranges::count_if(of_pair,
                                   [&](const ComparedCell* cell) { return cell->interval && side(*cell->interval); });
    };
    const bool one = of_pair.size() == 1;
    const Effect effect{.arm = arm == baseline ? "the candidate's " + arm : arm,
                        .baseline = arm == baseline ? "the baseline's" : baseline,
                        .cells = std::ssize(of_pair),
                        .time_ratio = mean_ratio(of_pair),
                        .interval = one ? of_pair.front()->interval : std::nullopt,
                        .verdict = one ? of_pair.front()->decision.verdict : std::nullopt,
                        .phases = phases_of(of_pair)};
    if (one) {
      parts.push_back(effect_words(effect));
      continue;
    }
    const std::string change = format_change(effect.time_ratio, std::nullopt);
    parts.push_back(fmt::format("{} takes {} {} {} over {} cells; by 95 % intervals {} of them take less, {} more",
                                effect.arm, change, change.ends_with("times") ? "the time of" : "time than",
                                effect.baseline, of_pair.size(),
                                counted([](const Interval& interval) { return interval.high < 1; }),
                                counted([](const Interval& interval) { return interval.low > 1; })));
  }
  if (parts.empty()) {
    return "Nothing could be compared: no cell has times on both sides.";
  }
  return sentence(fmt::format("{}", fmt::join(parts, "; "))) +
         (one_run ? "."
                  : ". No verdict: two runs share no launches, and what the machine did between them is in the ratio.");
}

}  // namespace decodelab
