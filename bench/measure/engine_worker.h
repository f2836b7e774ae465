// An arm of our own engine as a worker, in this process.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/measure/worker.h"
#include "bench/plan/arm.h"
#include "bench/plan/sweep_plan.h"
#include "engine/checkpoint/kept_bytes.h"
#include "engine/engine.h"

namespace decodelab {

/// What the cells of a sweep are filled with, and how they choose tokens.
struct CellInput {
  std::uint64_t seed = 1;             ///< Prompts and random cache contents come from it, the same for every arm.
  std::int64_t max_tokens = 16;       ///< Tokens of a completion, phase generate.
  std::vector<RealPrompt> prompts{};  ///< What rows are cut from; none: random ids.
  /// Prefilled caches of earlier processes; null: none are kept. Their keys begin with `kept_key`, which is a
  /// computed_by().
  std::shared_ptr<const KeptBytes> kept{};
  std::string kept_key{};
  /// Sampling of every row. Outputs are compared in greedy decoding, since each arm draws random numbers in its own
  /// way.
  SamplingParameters sampling;
  ArmRequest request{};                                        ///< What the worker's arm asks of each row.
  std::shared_ptr<const MaskVocabulary> vocabulary = nullptr;  ///< Needed by a request with a pattern.
  std::shared_ptr<const TokenBytes> texts = nullptr;           ///< Needed by a request for texts.
};

/// Returns the inputs of the cells of a plan.
CellInput cell_input(const LaunchPlan& plan);

/// Gives the input the bytes of a checkpoint's tokens where one of the arms has a pattern or wants texts; not where
/// none does, or the model has no tokenizer.
void add_token_bytes(std::span<const ArmRecord> arms, const std::filesystem::path& checkpoint, CellInput& input);

/// Returns a worker that runs cells on `engine`, whose plan has `arm` bound, and asks of each row what the arm asks.
/// Nobody else may use the engine during a call. Throws WorkerError for a pattern where the input has no vocabulary.
std::unique_ptr<Worker> make_engine_worker(std::shared_ptr<const Engine> engine, Arm arm, const CellInput& input);

}  // namespace decodelab
