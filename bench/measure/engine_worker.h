// An arm of our own engine as a worker, in this process.
#pragma once

#include <memory>
#include <string>

#include "bench/measure/worker.h"
#include "bench/plan/arm.h"
#include "bench/plan/sweep_plan.h"
#include "engine/checkpoint/kept_bytes.h"
#include "engine/engine.h"

namespace decodelab {

/// How the cells of a sweep are made up.
struct CellInput {
  std::uint64_t seed = 1;        ///< Prompts and random cache contents come from it, the same for every arm.
  std::int64_t max_tokens = 16;  ///< Tokens of a completion, phase generate.
  /// Prefilled caches of earlier processes, by a key that computed_by() begins; null: none are kept.
  std::shared_ptr<const KeptBytes> kept{};
  std::string kept_key{};
  SamplingParameters
      sampling;  ///< Of every row, but where outputs are compared: arms draw random numbers in ways of their own.
};

/// What the cells of a plan are made of.
CellInput cell_input(const LaunchPlan& plan);

/// Cells run by `engine`, whose plan has `arm` bound, and which is shared with nobody while a call is under way.
std::unique_ptr<Worker> make_engine_worker(std::shared_ptr<const Engine> engine, Arm arm, const CellInput& input);

}  // namespace decodelab
