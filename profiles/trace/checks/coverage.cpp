// I9: no step is empty, and steps of one kind did the same work: kernels with a device, operators on a CPU.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "profiles/trace/checks/check.h"

namespace decodelab {
namespace {

/// How often each name was run in a step.
using Work = std::map<StringId, std::int64_t>;

/// Steps of one kind should do the same work: they are of one batch, with as many launches.
using Kind = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

struct StepWork {
  const Step* step = nullptr;
  std::int64_t rows = 0;  ///< Rows of any sort, so that a step without operators is not called empty.
  Work work;
};

std::vector<StepWork> work_of_steps(const CheckInput& input) {
  const TraceEvents& events = input.events();
  std::vector<StepWork> steps(events.steps.size());
  std::unordered_map<std::int32_t, StepWork*> by_index;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].step = &events.steps[i];
    by_index.emplace(events.steps[i].index, &steps[i]);
  }
  const auto add = [&](std::int32_t step, StringId name, bool is_work) {
    const auto found = by_index.find(step);
    if (found == by_index.end()) {
      return;
    }
    ++found->second->rows;
    if (is_work) {
      ++found->second->work[name];
    }
  };
  if (input.on_device) {
    for (const DeviceOperation& operation : events.operations) {
      add(operation.step, operation.name, true);
    }
  } else {
    for (const HostSpan& span : events.spans) {
      add(span.step, span.name, span.kind == SpanKind::operator_call);
    }
  }
  return steps;
}

/// Returns the work that most steps did, the first at ties.
const Work& usual_work(const std::vector<const StepWork*>& steps) {
  std::map<Work, std::int64_t> votes;
  for (const StepWork* step : steps) {
    ++votes[step->work];
  }
  const StepWork* usual = *std::max_element(steps.begin(), steps.end(), [&](const StepWork* a, const StepWork* b) {
    return votes.at(a->work) < votes.at(b->work);
  });
  return usual->work;
}

/// Returns how many runs `work` has less than `usual`, over all names.
std::int64_t lacking(const Work& usual, const Work& work) {
  std::int64_t count = 0;
  for (const auto& [name, times] : usual) {
    const auto found = work.find(name);
    count += std::max<std::int64_t>(0, times - (found == work.end() ? 0 : found->second));
  }
  return count;
}

struct Findings {
  NamedRows empty;
  NamedRows odd;   ///< Lacks work, or with a device differs at all.
  NamedRows more;  ///< Did more: on a CPU that is no sign of lost rows.
};

void compare_steps(const std::vector<const StepWork*>& steps, bool on_device, const char* noun, Findings& findings) {
  const Work usual = usual_work(steps);
  for (const StepWork* step : steps) {
    const std::int64_t less = lacking(usual, step->work);
    const std::int64_t more = lacking(step->work, usual);
    if (less + more == 0) {
      continue;
    }
    NamedRows& rows = less > 0 || on_device ? findings.odd : findings.more;
    rows.add([&] { return fmt::format("step {} has {} {} less and {} more", step->step->index, less, noun, more); });
  }
}

}  // namespace

CheckResult check_step_coverage(const CheckInput& input) {
  const TraceEvents& events = input.events();
  if (events.steps.empty()) {
    return not_applicable("no step is marked");
  }
  const char* noun = input.on_device ? "operations" : "operators";
  const std::vector<StepWork> steps = work_of_steps(input);
  const bool any_row = std::any_of(steps.begin(), steps.end(), [](const StepWork& step) { return step.rows > 0; });
  if (!any_row && !events.operations.empty()) {
    return not_applicable("no operation says which step it is of");
  }
  const std::vector<MissingLaunches> missing = missing_launches(events);
  Findings findings;
  std::map<Kind, std::vector<const StepWork*>> kinds;
  std::int64_t seen = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = *steps[i].step;
    if (!counts(step)) {
      continue;
    }
    ++seen;
    const bool nothing_to_do = step.launches == 0 && step.graph_launches <= 0 && input.on_device;
    if (missing[i].any()) {
      continue;  // Check I8 reports it already.
    }
    if (steps[i].rows == 0 && !nothing_to_do) {
      findings.empty.add([&] { return fmt::format("step {}", step.index); });
    } else {
      kinds[{step.batch, step.launches, step.graph_launches}].push_back(&steps[i]);
    }
  }
  for (const auto& [kind, like] : kinds) {
    compare_steps(like, input.on_device, noun, findings);
  }
  CheckResult result{.value = static_cast<double>(findings.empty.count() + findings.odd.count())};
  if (findings.empty.count() > 0) {
    result.status = CheckStatus::failed;
    const char* what = input.on_device ? "device operation" : "span";
    result.evidence = fmt::format("{} of {} have no {} at all", findings.empty.count(), counted(seen, "step"), what);
    const bool some_have = findings.empty.count() < seen;
    result.evidence += some_have ? ": " + findings.empty.text() : collectors_off(events.session);
  } else if (findings.odd.count() > 0) {
    result.status = CheckStatus::warned;
    result.evidence = "steps that did not do what others of their kind did: " + findings.odd.text();
  } else {
    result.evidence = fmt::format("{} with the same {}", counted(seen, "step"), noun);
    if (findings.more.count() > 0) {
      result.evidence += ", but for more work: " + findings.more.text();
    }
  }
  return result;
}

}  // namespace decodelab
