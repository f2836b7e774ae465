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
  /// Cells, dtype, device and so on; its arms and workers are set from the two commands. Launches are as many as the
  /// looks need; of blocks each has as many as its start asks for (kFittedBlocks), if none are given.
  SweepRequest sweep{.launches = 0, .blocks = kFittedBlocks};
  std::string baseline_command;
  std::string candidate_command;
  std::string self_test_arm;
  GatePolicy policy;
  std::optional<std::string> accepted_counters;
  std::string store = kDefaultStore;
};

/// A command that starts this very program as the worker of an arm, quoted for a shell. Throws std::invalid_argument
/// for no arm.
std::string own_worker(const std::string& arm);

/// Why a gate had better not begin now; empty: nothing speaks against it. Takes about a second.
std::string preflight();

/// Measures look after look until the gate is decided; none where it was interrupted.
std::optional<GateDecision> measure_gate(const GateRequest& request);

/// Decides a stored gate again by the policy that it was measured by. Throws std::invalid_argument where the run is no
/// gate's.
GateDecision replay_stored_gate(const std::string& store, const std::string& selector);

/// What a gate of a build against itself says, and against itself with every step made longer by twice the margin.
struct GateSelfTest {
  GateDecision same;
  std::optional<GateDecision> slower;  ///< None where the first said all, or was interrupted.
  std::int64_t slow_ns = 0;
  ExitCode exit_code = ExitCode::ok;  ///< 0: the first passed and the second was found.
  std::string words;
};
GateSelfTest self_test_gate(GateRequest request);

}  // namespace decodelab
