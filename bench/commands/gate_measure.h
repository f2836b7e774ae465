// A gate from its request to its decision: the part between the command line and the printed report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/commands/commands.h"
#include "bench/plan/sweep_plan.h"
#include "reports/statistics/gate.h"

namespace decodelab {

struct GateRequest {
  /// Cells, dtype, device and so on; arms and workers are set from the two commands below. The looks decide the number
  /// of launches. Where no number of blocks is given, the first launch fits it to the time that workers take to start
  /// (kFittedBlocks).
  SweepRequest sweep{.launches = 0, .blocks = kFittedBlocks};
  std::string baseline_command;
  std::string candidate_command;
  std::string self_test_arm;
  GatePolicy policy;
  std::optional<std::string> accepted_counters;
  std::string store = kDefaultStore;
};

/// Returns a command, quoted for a shell, that starts this very program as the worker of `arm`. Throws
/// std::invalid_argument for a text that is no arm.
std::string own_worker(const std::string& arm);

/// Returns why a gate should not begin now; empty where nothing speaks against it. Takes about a second.
std::string preflight();

/// Measures look after look until the gate is decided, and returns the decision; nothing where it was interrupted.
std::optional<GateDecision> measure_gate(const GateRequest& request);

/// Decides a stored gate again, by the policy that it was measured with. Throws std::invalid_argument where the run is
/// not of a gate.
GateDecision replay_stored_gate(const std::string& store, const std::string& selector);

/// The decisions of a gate between a build and itself, and between the build and itself with every step made longer by
/// twice the margin.
struct GateSelfTest {
  GateDecision same;
  std::optional<GateDecision> slower;  ///< Empty where the first gate did not pass, or where this one was interrupted.
  std::int64_t slow_ns = 0;
  ExitCode exit_code = ExitCode::ok;  ///< ok: the first gate passed, and the second one found the slow-down.
  std::string words;
};
GateSelfTest self_test_gate(GateRequest request);

}  // namespace decodelab
