// What the two variants that record decode steps into CUDA graphs share.
#pragma once

#include <string>

#include "engine/generation/graph_plan.h"
#include "engine/generation/graph_runner.h"
#include "variants/registry.h"
#include "variants/step_runner/graph_conflict.h"

namespace decodelab {

/// A multiple of the keys per tile of split-kv-decode that keeps the number of graphs low: 32 graphs for StarCoder's
/// 8192 positions.
inline constexpr std::int64_t kDefaultKeysMultiple = 256;
inline constexpr std::int64_t kMostKeysMultiple = 1 << 20;
/// The largest batch of the SantaCoder study.
inline constexpr std::int64_t kDefaultMostRows = 256;
inline constexpr std::int64_t kMostRows = 1 << 16;

inline ParameterSpec most_rows_parameter() {
  return {.name = "rows",
          .default_value = kDefaultMostRows,
          .minimum = 1,
          .maximum = kMostRows,
          .help = "rows up to which a batch is filled up to a power of two"};
}

inline std::string graphs_unsupported(const RunsOn& where) {
  if (where.config.encoder) {
    return "a recorded step knows no encoded prompts, which this model's layers attend to";
  }
  return where.device == "cpu" ? "CUDA graphs need a CUDA device" : "";
}

inline void bind_graph_runner(EnginePlan& plan, const std::string& variant, GraphScope scope,
                              const GraphBuckets& buckets) {
  plan.step_runner.bind(variant, [scope, buckets](const StepRunnerOptions& options) {
    return make_graph_runner(options, scope, buckets,
                             [&device = options.device] { return make_cuda_graph_recorder(device); });
  });
}

inline std::vector<Expectation> graphs_expected(const CountedSteps& counted, GraphScope scope) {
  if (counted.phase != Phase::decode) {
    return {};
  }
  return {{"graph_launches", counted.steps * graph_launches_of_step(scope, counted.config.layers)}};
}

}  // namespace decodelab
