// The looks of an adaptive sweep as decisions of its rows.
#include "reports/statistics/adaptive.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "reports/statistics/looks.h"
#include "reports/statistics/summary.h"

namespace decodelab {
namespace {

Verdict verdict_of(LookVerdict verdict) {
  switch (verdict) {
    case LookVerdict::slower: return Verdict::slower;
    case LookVerdict::faster: return Verdict::faster;
    case LookVerdict::within: return Verdict::same;
    case LookVerdict::undecided: break;
  }
  return Verdict::inconclusive;
}

Decision decision_of(const LookContrast& look) {
  Decision decision{.verdict = verdict_of(look.verdict),
                    .reason = "",
                    .p_t = look.p_t,
                    .p_sign_flip = look.p_sign_flip,
                    .p_family = look.p_family,
                    .mde = look.mde,
                    .more_launches = std::nullopt};
  if (look.verdict != LookVerdict::undecided) {
    return decision;
  }
  decision.reason = look.tests_disagree ? kTestsDisagree : kNeitherWay;
  if (look.more) {
    decision.more_launches = static_cast<std::int64_t>(*look.more);
  }
  return decision;
}

bool is_open(const Decision& decision) { return !decision.verdict || *decision.verdict == Verdict::inconclusive; }

}  // namespace

bool is_adaptive(const RunRecord& run) {
  // Runs of tests and of other tools may have a plan that is no object.
  const auto plan = parse_json_or_discard(run.plan_json);
  return plan.is_object() && plan.value("adaptive", false);
}

std::vector<AdaptiveContrast> decide_adaptive(const std::vector<std::vector<double>>& contrasts) {
  std::vector<AdaptiveContrast> decided;
  if (contrasts.empty()) {
    return decided;
  }
  const LookRule rule = adaptive_looks();
  const std::size_t launches = contrasts.front().size();
  if (std::ranges::find(rule.looks, launches) == rule.looks.end()) {
    const Decision none{.reason =
                            fmt::format("{} launches, and the looks are at {}", launches, fmt::join(rule.looks, ", "))};
    for (const auto& values : contrasts) {
      decided.push_back({none, mean_interval(without_gaps(values), rule.level)});
    }
    return decided;
  }
  for (const LookContrast& look : decide_adaptive_look(contrasts)) {
    decided.push_back({decision_of(look), look.interval});
  }
  return decided;
}

bool is_decided(RunData data) {
  data.run.ended_unix_ns = 1;  // decide as if the run ended here
  const RunSummary summary = summarize(data);
  const auto open = [](const auto& contrast) { return is_open(contrast.decision); };
  return std::ranges::none_of(summary.composites, open) &&
         std::ranges::none_of(summary.rows,
                              [&](const SummaryRow& row) { return !row.comparison.blocks.empty() && open(row); });
}

}  // namespace decodelab
