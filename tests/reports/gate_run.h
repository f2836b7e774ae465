// A made-up gate: two arms, two launches a gate block, one of the cells slower by a known factor.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "reports/store/record.h"
#include "tests/reports/sample_run.h"

namespace decodelab::testing {

struct GateRunOptions {
  std::vector<Phase> phases{Phase::decode};
  std::vector<std::int64_t> lengths{64, 128};
  std::int64_t gate_blocks = 12;  ///< The first look, and what must bear a slow-down out.
  std::int64_t blocks = 1;
  double slow_down = 0;  ///< Of the candidate in every cell.
  double noise = 0.004;  ///< Of an arm's level in a launch, which makes the sd of a gate block's contrast.
  double launch_order =
      0;  ///< Added to the candidate's logarithm where its process starts first, taken off where second.
  std::uint64_t seed = 1;
};

inline RunData gate_run(const GateRunOptions& options = {}) {
  RunData data = sample_run({.phases = options.phases,
                             .batches = {1},
                             .lengths = options.lengths,
                             .arms = {{"before"}, {"after", 1 + options.slow_down}},
                             .launches = 2 * options.gate_blocks,
                             .blocks = options.blocks,
                             .seed = options.seed,
                             .launch_noise = options.noise,
                             .step_noise = 0.001,
                             .with_failures = false});
  for (BlockRecord& block : data.blocks) {
    const double factor = std::exp(block.launch % 2 == 0 ? -options.launch_order : options.launch_order);
    for (VisitRecord& visit : block.visits) {
      if (visit.arm_id == data.arms.front().id) {
        continue;
      }
      for (std::int64_t& ns : visit.samples_ns) {
        ns = std::llround(static_cast<double>(ns) * factor);
      }
    }
  }
  return data;
}

}  // namespace decodelab::testing
