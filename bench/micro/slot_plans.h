// The implementations of one slot: the reference and every registered variant that binds it, so that a new variant is
// benchmarked unasked.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "engine/checkpoint/synthetic.h"
#include "engine/plan.h"
#include "engine/tensor.h"
#include "variants/registry.h"

namespace decodelab {

/// The shape of SantaCoder, whose single operations the study optimized.
inline ModelConfig santacoder() { return *synthetic_config("synthetic:santacoder"); }

/// Returns (`reference` or the variant's name, a plan that binds it) for every implementation of `slot` that a CPU can
/// run in fp32.
inline std::vector<std::pair<std::string, EnginePlan>> plans_of_slot(const std::string& slot) {
  std::vector<std::pair<std::string, EnginePlan>> plans{{"reference", reference_plan()}};
  for (const auto& [name, variant] : registered_variants()) {
    const std::vector<std::string> bound = slots_bound_by(variant);
    const ModelConfig config = santacoder();
    if (std::ranges::find(bound, slot) == bound.end()) {
      continue;
    }
    EnginePlan plan = reference_plan();
    variant.apply(plan, complete_parameters(variant, {}));
    const RunsOn cpu{.config = config, .dtype = ElementType::float32, .device = "cpu", .plan = &plan};
    if (!variant.unsupported || variant.unsupported(cpu).empty()) {
      plans.emplace_back(name, std::move(plan));
    }
  }
  return plans;
}

/// Runs a whole benchmark program. Calls `register_all` from main() and not at start-up, since the variants must have
/// registered themselves before.
inline int run_benchmarks(int argc, char** argv, void (*register_all)()) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 2;
  }
  register_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace decodelab
