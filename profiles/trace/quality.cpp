// Runs the table of checks and takes the worst for the verdict.
#include "profiles/trace/quality.h"

#include <algorithm>

#include <fmt/format.h>

#include "profiles/trace/account.h"
#include "profiles/trace/checks/check.h"

namespace decodelab {
namespace {

bool nothing_recorded(const TraceEvents& events) {
  return events.spans.empty() && events.api_calls.empty() && events.operations.empty() && events.waits.empty() &&
         events.overheads.empty() && events.session.dropped_records == 0 && events.session.zero_times == 0;
}

TraceQuality untraced(const TraceEvents& events) {
  TraceQuality quality{.verdict = TraceVerdict::untraced,
                       .reason = "nothing was recorded" + collectors_off(events.session)};
  for (const CheckDefinition& definition : check_table()) {
    quality.checks.push_back({.id = definition.id, .title = definition.title, .evidence = "nothing was recorded"});
  }
  return quality;
}

CheckResult run_check(const CheckDefinition& definition, const CheckInput& input) {
  if (definition.needs_device && !input.on_device) {
    return not_applicable("needs rows of a device, and the engine ran on the CPU");
  }
  if (definition.adds_times && !input.times_add_up) {
    return not_applicable("the stamps cannot be compared (I2)");
  }
  return definition.run(input);
}

TraceVerdict verdict_of(CheckStatus status, TraceVerdict when_failed) {
  switch (status) {
    case CheckStatus::failed: return when_failed;
    case CheckStatus::warned: return TraceVerdict::warn;
    case CheckStatus::partial: return TraceVerdict::partial;
    case CheckStatus::passed:
    case CheckStatus::excluded:
    case CheckStatus::not_applicable: return TraceVerdict::ok;
  }
  return TraceVerdict::ok;
}

/// Returns what of a partial trace may be believed, and for which time and steps.
std::string believed(const TraceEvents& events) {
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
  std::int64_t steps = 0;
  for (const Step& step : events.steps) {
    if (!counts(step)) {
      continue;
    }
    if (steps++ == 0) {
      first_ns = step.start_ns;
    }
    last_ns = std::max(last_ns, step.end_ns);
  }
  std::string what = events.session.graph_granularity ? "busy time, replays" : "busy time, kernels";
  what += events.api_calls.empty() ? " and gaps without causes" : " and gaps";
  if (events.operations.empty()) {
    what = "host time";
  }
  const auto ms = [&](std::int64_t ns) { return static_cast<double>(ns - events.session.capture_start_ns) * 1e-6; };
  return fmt::format("{}, {:.1f} to {:.1f} ms ({} of {})", what, ms(first_ns), ms(last_ns), steps,
                     counted(static_cast<std::int64_t>(events.steps.size()), "step"));
}

}  // namespace

const char* to_string(TraceVerdict verdict) {
  switch (verdict) {
    case TraceVerdict::ok: return "ok";
    case TraceVerdict::warn: return "warn";
    case TraceVerdict::contaminated: return "contaminated";
    case TraceVerdict::partial: return "partial";
    case TraceVerdict::broken: return "broken";
    case TraceVerdict::untraced: return "untraced";
  }
  return "unknown";
}

const char* to_string(CheckStatus status) {
  switch (status) {
    case CheckStatus::passed: return "passed";
    case CheckStatus::excluded: return "excluded";
    case CheckStatus::warned: return "warned";
    case CheckStatus::partial: return "partial";
    case CheckStatus::failed: return "failed";
    case CheckStatus::not_applicable: return "not-applicable";
  }
  return "unknown";
}

TraceQuality verify(const Trace& trace) {
  const TraceEvents& events = trace.events();
  if (nothing_recorded(events)) {
    return untraced(events);
  }
  const bool times_add_up = reach_of(events).adds_up();
  const Attribution sums = times_add_up ? account(trace) : Attribution{};
  const CheckInput input{
      .trace = trace, .account = sums, .on_device = has_device(events), .times_add_up = times_add_up};
  TraceQuality quality{.verdict = TraceVerdict::ok};
  for (const CheckDefinition& definition : check_table()) {
    CheckResult result = run_check(definition, input);
    const TraceVerdict verdict = verdict_of(result.status, definition.when_failed);
    if (verdict > quality.verdict) {
      quality.verdict = verdict;
      quality.reason = std::string(definition.id) + ": " + result.evidence;
    }
    quality.checks.push_back({.id = definition.id,
                              .title = definition.title,
                              .status = result.status,
                              .value = result.value,
                              .limit = result.limit,
                              .evidence = std::move(result.evidence)});
  }
  if (quality.verdict == TraceVerdict::partial) {
    quality.believe = believed(events);
  }
  return quality;
}

}  // namespace decodelab
