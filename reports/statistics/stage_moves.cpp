// Matches the stages of two traces by name.
#include "reports/statistics/stage_moves.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace decodelab {
namespace {

constexpr const char* kStage = "stage";
constexpr const char* kGap = "gap";
constexpr double kNotablePerturbation = 1.05;  // the limit above which a trace is called notable (check I13)
constexpr std::size_t kStagesInASentence = 2;

const TraceRecord* trace_of(const TracedSide& side) {
  const auto found = std::ranges::find_if(side.data->traces, [&](const TraceRecord& trace) {
    return trace.cell_id == side.cell->id && trace.arm_id == side.arm->id;
  });
  return found == side.data->traces.end() ? nullptr : &*found;
}

std::string refusal_of(const TraceRecord& trace, const std::string& arm) {
  if (trace.verdict == "broken" || trace.verdict == "contaminated" || trace.verdict == "untraced") {
    return fmt::format("the trace of {} is {}{}{}", arm, trace.verdict, trace.reason.empty() ? "" : ": ", trace.reason);
  }
  return trace.steps <= 0 ? fmt::format("the trace of {} covers no step", arm) : "";
}

double a_step(std::int64_t ns, const TraceRecord& trace) {
  return static_cast<double>(ns) / static_cast<double>(trace.steps);
}

std::vector<StageMove> moves_of(const char* kind, const TraceRecord& baseline, const TraceRecord& candidate) {
  std::vector<StageMove> moves;
  std::map<std::string, std::size_t> index;
  const auto add = [&](const TraceRecord& trace, double StageMove::* side) {
    for (const TraceShareRecord& share : trace.shares) {
      if (share.kind != kind) {
        continue;
      }
      const auto [place, added] = index.try_emplace(share.name, moves.size());
      if (added) {
        moves.push_back({.name = share.name});
      }
      moves[place->second].*side += a_step(kind == std::string(kGap) ? share.device_ns : share.host_ns, trace);
    }
  };
  add(baseline, &StageMove::baseline_ns);
  add(candidate, &StageMove::candidate_ns);
  std::ranges::stable_sort(moves, std::greater<>(), [](const StageMove& move) { return std::abs(move.moved_ns()); });
  return moves;
}

}  // namespace

std::optional<StageMoves> stage_moves(const TracedSide& baseline, const TracedSide& candidate) {
  const TraceRecord* const before = trace_of(baseline);
  const TraceRecord* const after = trace_of(candidate);
  if (before == nullptr || after == nullptr) {
    return std::nullopt;
  }
  StageMoves moves{.cell = *candidate.cell,
                   .run_id = candidate.data->run.id,
                   .baseline_arm = baseline.arm->label,
                   .arm = candidate.arm->label};
  moves.refusal = refusal_of(*before, moves.baseline_arm);
  if (moves.refusal.empty()) {
    moves.refusal = refusal_of(*after, moves.arm);
  }
  if (moves.refusal.empty() && before->tier != after->tier) {
    moves.refusal = fmt::format("one trace is of tier {} and the other of tier {}", before->tier, after->tier);
  }
  if (!moves.refusal.empty()) {
    return moves;
  }
  for (const auto& [trace, arm] : {std::pair(before, &moves.baseline_arm), std::pair(after, &moves.arm)}) {
    if (trace->verdict == "warn") {
      moves.warnings.push_back(fmt::format("{}: {}", *arm, trace->reason));
    }
    if (trace->perturbation > kNotablePerturbation) {
      moves.warnings.push_back(fmt::format("tracing slowed {} by {:.1f} %", *arm, (trace->perturbation - 1) * 100));
    }
  }
  moves.stages = moves_of(kStage, *before, *after);
  moves.step = {"the whole step", a_step(before->steps_ns, *before), a_step(after->steps_ns, *after)};
  // By subtraction, so that the rows add up even where an account did not.
  StageMove residual{kResidualRow, moves.step.baseline_ns, moves.step.candidate_ns};
  for (const StageMove& stage : moves.stages) {
    residual.baseline_ns -= stage.baseline_ns;
    residual.candidate_ns -= stage.candidate_ns;
  }
  moves.stages.push_back(residual);
  moves.gaps = moves_of(kGap, *before, *after);
  return moves;
}

std::string stage_moves_sentence(const StageMoves& moves) {
  if (!moves.refusal.empty()) {
    return fmt::format("What moved is not known: {}.", moves.refusal);
  }
  const auto signed_us = [](double ns) { return fmt::format("{:+.1f} us", ns / 1e3); };
  std::string largest;
  for (std::size_t i = 0; i < std::min(kStagesInASentence, moves.stages.size()); ++i) {
    largest += fmt::format("{}{} {}", i == 0 ? "" : ", ", moves.stages[i].name, signed_us(moves.stages[i].moved_ns()));
  }
  return fmt::format("What moved, by the traces of {} and {}: a step {}; of that {}.", moves.baseline_arm, moves.arm,
                     signed_us(moves.step.moved_ns()), largest);
}

}  // namespace decodelab
