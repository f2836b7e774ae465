// Plans a gate's run, measures it look by look, and keeps in the store all that a replay needs.
#include "bench/commands/gate_measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "bench/commands/checkpoint_source.h"
#include "bench/commands/new_run.h"
#include "bench/commands/terminal.h"
#include "bench/machine/environment.h"
#include "bench/measure/gate_run.h"
#include "bench/measure/progress.h"
#include "bench/plan/arm.h"
#include "reports/statistics/summary.h"
#include "reports/store/store.h"

namespace decodelab {
namespace {

constexpr const char* kBaseline = "baseline";
constexpr const char* kCandidate = "candidate";
/// Share of the machine's core time that others may use before a gate begins: beyond it every step waits for its turn.
constexpr double kBusyShare = 0.4;
constexpr auto kPreflight = std::chrono::seconds(1);
/// The slow-down of a self-test, in margins: one that any gate worth running finds.
constexpr double kSelfTestMargins = 2;

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) {
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return text + "'";
}

/// Returns what a replay needs besides the blocks.
nlohmann::json gate_json_of(const GateRequest& request, const GateChecks& checks) {
  nlohmann::json json{{"policy", parse_json(to_json(request.policy))},
                      {"plan", checks.plan},
                      {"accepted_arm", checks.accepted_arm},
                      {"accepted_counters", nullptr}};
  if (checks.accepted_counters) {
    json["accepted_counters"] = *checks.accepted_counters;
  }
  return json;
}

/// Returns the seconds that a launch may take so that the time budget holds the fewest gate blocks that can fail a
/// gate: those of the first look, and as many fresh ones.
double launch_seconds(const GatePolicy& policy) {
  const std::size_t first = policy.looks.looks.front();
  const auto launches =
      static_cast<double>(kLaunchesOfAGateBlock) * static_cast<double>(first + std::min(first, policy.fresh_blocks));
  return policy.time_budget_s.value_or(std::numeric_limits<double>::infinity()) / launches;
}

/// Measures until a replay of what is stored decides; `stopped` where it was interrupted.
LaunchEnd measure(Store& store, std::int64_t run_id, const GatePolicy& policy, const GateChecks& checks) {
  StatusLine line;
  std::int64_t wanted = 0;
  const auto display = [&](std::int64_t launches, double seconds_each) {
    const auto total = static_cast<double>(wanted * kLaunchesOfAGateBlock);
    const auto done = static_cast<double>(launches);
    line.show(progress_line(
        done / total, seconds_each * (total - done),
        fmt::format("{} gate blocks of at most {}", wanted, policy.looks.looks.back() + policy.fresh_blocks),
        line.columns()));
  };
  GateRun gate(store, run_id, display, launch_seconds(policy));
  const auto run_until = [&](std::size_t gate_blocks) {
    wanted = static_cast<std::int64_t>(gate_blocks);
    return gate.run_until(wanted);
  };
  // Counters and outputs are known after the first gate block, and may decide the gate without any timing.
  if (run_until(1) == LaunchEnd::stopped) {
    return LaunchEnd::stopped;
  }
  GateDecision decision = decide_gate(store.load_run(run_id), policy, 0, checks);
  while (decision.outcome == GateOutcome::proceed && decision.next_look) {
    const std::size_t look = *decision.next_look;
    if (run_until(look) == LaunchEnd::stopped) {
      return LaunchEnd::stopped;
    }
    decision = decide_gate(store.load_run(run_id), policy, decision.looks_done, checks);
    if (decision.next_look == look) {
      break;  // a launch left no block, and would leave none again: the replay says what is missing
    }
  }
  return LaunchEnd::complete;
}

double slowest_step_ns(const RunData& data) {
  double slowest = 0;
  for (const SummaryRow& row : summarize(data).rows) {
    slowest = std::max(slowest, row.cell_mean_ns.value_or(0));
  }
  return slowest;
}

}  // namespace

std::string own_worker(const std::string& arm) {
  parse_plain_arm(arm, "arms in processes of their own are compared under one request; leave --apart away");
  return quoted(std::filesystem::read_symlink("/proc/self/exe").string()) + " worker --arm " + quoted(arm);
}

std::string preflight() {
  const CpuClock clock;
  std::this_thread::sleep_for(kPreflight);
  const double share = clock.other_share();
  return share > kBusyShare
             ? fmt::format("other processes use {:.0f} % of the machine's core time; stop them, or wait", 100 * share)
             : "";
}

std::optional<GateDecision> measure_gate(const GateRequest& request) {
  SweepRequest sweep = request.sweep;
  sweep.arms.clear();
  sweep.workers = {fmt::format("{}={}", kBaseline, request.baseline_command),
                   fmt::format("{}={}", kCandidate, request.candidate_command)};
  sweep.baseline = kBaseline;
  // Slices are fair here, since both builds are stopped and continued in the same way.
  sweep.slice_ns = sweep.slice_ns.value_or(kSliceNs);
  sweep.fill = sweep.fill.empty() ? "random" : sweep.fill;
  sweep.launches = kLaunchesOfAGateBlock *
                   static_cast<std::int64_t>(request.policy.looks.looks.back() + request.policy.fresh_blocks);
  RunData data = plan_gate_run(sweep, config_of(sweep.model));
  const CheckpointSource source = open_checkpoint(sweep.model, dtype_from_name(sweep.dtype), sweep.device);
  describe_run(data, sweep, source);
  const GateChecks checks{.accepted_counters = request.accepted_counters,
                          .accepted_arm = request.accepted_counters ? kCandidate : "",
                          .plan = gate_plan_hash(request.policy, data.cells)};
  auto plan = parse_json(data.run.plan_json);
  plan["gate"] = gate_json_of(request, checks);
  data.run.plan_json = plan.dump();
  Store store(request.store, StoreAccess::write);
  store.add_run(data);
  if (measure(store, data.run.id, request.policy, checks) == LaunchEnd::stopped) {
    return std::nullopt;
  }
  store.end_run(data.run.id, unix_ns());
  return replay_gate(store.load_run(data.run.id), request.policy, checks);
}

GateDecision replay_stored_gate(const std::string& path, const std::string& selector) {
  const RunSelector parsed = parse_run_selector(selector, path);
  const Store store(parsed.store, StoreAccess::read);
  const RunData data = store.load_run(store.find_run(parsed.run));
  try {
    const auto gate = parse_json(data.run.plan_json).at("gate");
    GateChecks checks{
        .accepted_counters = std::nullopt, .accepted_arm = gate.at("accepted_arm"), .plan = gate.at("plan")};
    if (!gate.at("accepted_counters").is_null()) {
      checks.accepted_counters = gate.at("accepted_counters").get<std::string>();
    }
    return replay_gate(data, parse_gate_policy(gate.at("policy").dump(), "the stored policy"), checks);
  } catch (const nlohmann::json::exception&) {
    throw std::invalid_argument(
        fmt::format("--replay '{}': that run is no gate's; 'decodelab gate' makes one", selector));
  }
}

GateSelfTest self_test_gate(GateRequest request) {
  GateSelfTest test;
  const auto measured = measure_gate(request);
  if (!measured) {
    test.exit_code = ExitCode::interrupted;
    test.words = "interrupted";
    return test;
  }
  test.same = *measured;
  if (test.same.outcome != GateOutcome::pass) {
    // Where a build does not pass against itself, the machine is at fault, not the build.
    test.exit_code = test.same.outcome == GateOutcome::inconclusive ? ExitCode::inconclusive : ExitCode::invalid;
    test.words =
        "self-test failed: the same build against itself did not pass, so that no gate here would mean anything";
    return test;
  }
  const Store store(request.store, StoreAccess::read);
  const double margin = std::max(request.policy.decode_margin, request.policy.prefill_margin);
  test.slow_ns = std::llround(kSelfTestMargins * margin * slowest_step_ns(store.load_run(test.same.run.id)));
  request.candidate_command = own_worker(fmt::format("{}{}:{}", kSlowPrefix, test.slow_ns, request.self_test_arm));
  test.slower = measure_gate(request);
  const bool found = test.slower && test.slower->outcome == GateOutcome::regression;
  test.exit_code = !test.slower                                        ? ExitCode::interrupted
                   : found                                             ? ExitCode::ok
                   : test.slower->outcome == GateOutcome::inconclusive ? ExitCode::inconclusive
                                                                       : ExitCode::invalid;
  test.words = found ? "self-test passed: the same build passes, and a slow-down of twice the margin is found"
                     : "self-test failed: a slow-down of twice the margin was not found";
  return test;
}

}  // namespace decodelab
