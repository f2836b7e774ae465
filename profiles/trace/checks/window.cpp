// I10: reports steps that collection did not cover from end to end, which statistics leave out.
#include <set>

#include <fmt/format.h>

#include "profiles/trace/checks/check.h"

namespace decodelab {

CheckResult check_window(const CheckInput& input) {
  const TraceEvents& events = input.events();
  if (events.steps.empty()) {
    return not_applicable("no step is marked");
  }
  std::set<std::int32_t> indexes;
  NamedRows twice;
  NamedRows left_out;
  for (const Step& step : events.steps) {
    if (!indexes.insert(step.index).second) {
      twice.add([&] { return fmt::format("step {}", step.index); });
    }
    if (counts(step)) {
      continue;
    }
    left_out.add([&] { return fmt::format("step {}: {}", step.index, step.excluded_reason); });
  }
  const auto steps = static_cast<std::int64_t>(events.steps.size());
  CheckResult result{.value = static_cast<double>(left_out.count())};
  result.evidence = counted(steps, "step") + " inside of the window";
  if (events.session.window_end_ns <= events.session.window_start_ns) {
    result.evidence = counted(steps, "step") + "; the window of this trace is not known";
  }
  if (left_out.count() > 0) {
    result.status = left_out.count() == steps ? CheckStatus::failed : CheckStatus::excluded;
    result.evidence = fmt::format("{} of {} left out: {}", left_out.count(), counted(steps, "step"), left_out.text());
  }
  if (twice.count() > 0) {
    result.status = CheckStatus::failed;
    result.evidence = "more than one row of " + twice.text();
  }
  if (events.session.out_of_window > 0) {
    result.evidence +=
        fmt::format("; {} outside of the window were dropped", counted(events.session.out_of_window, "record"));
  }
  return result;
}

}  // namespace decodelab
