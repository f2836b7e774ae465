// What the harness adds to a step: an empty one between its clocks, its time kept as a visit keeps it.
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/measure/steps.h"
#include "bench/measure/timed_step.h"

namespace decodelab {
namespace {

/// An item is a step.
void run_empty_steps(benchmark::State& state) {
  const std::string device = "cpu";
  for (auto _ : state) {
    std::vector<std::int64_t> samples_ns;
    samples_ns.reserve(kMaximumSteps);
    std::int64_t wall_ns = 0;
    for (std::int64_t step = 0; step < kMaximumSteps; ++step) {
      samples_ns.push_back(timed_ns([] {}, device, 0));
      wall_ns += samples_ns.back();
    }
    benchmark::DoNotOptimize(wall_ns);
    benchmark::DoNotOptimize(samples_ns.data());
  }
  state.SetItemsProcessed(state.iterations() * kMaximumSteps);
}

BENCHMARK(run_empty_steps)->Name("empty step");

}  // namespace
}  // namespace decodelab

BENCHMARK_MAIN();
