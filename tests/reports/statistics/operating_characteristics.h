// What a gate finds, by simulation: how often it passes, fails and stays undecided at effects of known size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reports/statistics/gate_policy.h"

namespace decodelab {

/// Gates of one true effect. The three shares are 1 together.
struct OperatingPoint {
  double effect = 0;  ///< As a share of time.
  double pass = 0;
  double fail = 0;
  double inconclusive = 0;
  double gate_blocks = 0;  ///< Mean number that a gate ran.
};

struct SimulatedGates {
  double block_sd = 0;  ///< Of a cell's contrast in a gate block, as a share.
  double margin = 0;    ///< As a share.
  std::size_t cells =
      1;             ///< Independent; the effect is in the first of them, the others have none. There is no composite.
  int gates = 1000;  ///< For each effect: the shares are good to 1.6 points (standard error).
  std::uint64_t seed = 1;
};

/// At 0, half the margin, the margin and twice the margin, with normal noise, by the looks of the policy.
std::vector<OperatingPoint> operating_characteristics(const SimulatedGates& simulated, const GatePolicy& policy);

}  // namespace decodelab
