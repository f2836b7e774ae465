// Hands out the account of a trace that can be believed, and says what its steps were bound by.
#include "profiles/trace/attribution.h"

#include <algorithm>

#include "profiles/trace/account.h"
#include "profiles/trace/quality.h"

namespace decodelab {
namespace {

/// A step whose device is busy for this part of it is bound by its kernels.
constexpr double kBusyShareOfKernelBound = 0.9;

std::string bound_on_device(const Attribution& attribution) {
  std::int64_t busy_ns = 0;
  std::array<std::int64_t, kGapCauseNames.size()> gaps{};
  for (const StepAccount& step : attribution.steps) {
    busy_ns += step.busy_ns;
    for (std::size_t i = 0; i < gaps.size(); ++i) {
      gaps[i] += step.gap_ns[i];
    }
  }
  if (static_cast<double>(busy_ns) >= kBusyShareOfKernelBound * static_cast<double>(attribution.steps_ns)) {
    return "kernels";
  }
  return kGapCauseNames[static_cast<std::size_t>(std::max_element(gaps.begin(), gaps.end()) - gaps.begin())];
}

std::string bound_on_host(const Attribution& attribution) {
  std::string name = "residual";
  std::int64_t most_ns = 0;
  for (const StepAccount& step : attribution.steps) {
    most_ns += step.residual_ns;
  }
  for (const StageCost& stage : attribution.stages) {
    if (stage.host_ns < most_ns || stage.host_ns == 0) {
      continue;
    }
    most_ns = stage.host_ns;
    name = kStageNames[std::min(static_cast<std::size_t>(stage.stage), kStageNames.size() - 1)];
  }
  return name;
}

Attribution refused(std::string refusal) {
  Attribution attribution;
  attribution.refusal = std::move(refusal);
  return attribution;
}

}  // namespace

Attribution attribute(const Trace& trace, const TraceQuality& quality) {
  if (quality.verdict == TraceVerdict::broken || quality.verdict == TraceVerdict::untraced) {
    return refused(quality.reason);
  }
  const std::vector<Step>& steps = trace.events().steps;
  if (steps.empty()) {
    return refused("no step is marked in this trace, so there is nothing to divide its time by");
  }
  if (std::none_of(steps.begin(), steps.end(), [](const Step& step) { return step.excluded_reason.empty(); })) {
    return refused("no step is left: the first is " + steps.front().excluded_reason);
  }
  const bool contaminated = quality.verdict == TraceVerdict::contaminated;
  if (contaminated && !has_device(trace.events())) {
    return refused(quality.reason);
  }
  Attribution attribution = account(trace);
  attribution.host_time_believable = !contaminated;
  attribution.believable = true;
  attribution.bound_by = attribution.on_device ? bound_on_device(attribution) : bound_on_host(attribution);
  return attribution;
}

}  // namespace decodelab
