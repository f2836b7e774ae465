// Prefill and decode attention of one SantaCoder layer, fp32: arguments are batch and length.
#include "engine/layers/attention.h"
#include "bench/micro/slot_plans.h"
#include "engine/layers/softmax.h"
#include "engine/layers/step_memory.h"
#include "engine/layers/step_rows.h"

namespace decodelab {
namespace {

void run(benchmark::State& state, const AttentionFactory& factory, bool prefill) {
  const c10::InferenceMode inference;
  const ModelConfig config = santacoder();
  const std::int64_t B = state.range(0);
  const std::int64_t L = state.range(1);
  const std::int64_t T = prefill ? L : 1;
  const auto rows_of = [B](std::int64_t value) {
    return std::vector<std::int64_t>(static_cast<std::size_t>(B), value);
  };
  const at::Tensor query = at::randn({B, T, config.hidden_size});
  const at::Tensor keys = at::randn({B, L, config.head_dim});
  const at::Tensor values = at::randn({B, L, config.head_dim});
  const auto attention = factory(config, make_unfused_softmax);
  PlainStepMemory memory;
  for (auto _ : state) {
    const StepRows rows(rows_of(L - T), rows_of(T), config.positions, at::kCPU);
    benchmark::DoNotOptimize(attention->forward(
        {.layer = 0, .query = query, .keys = keys, .values = values, .rows = rows, .memory = memory}));
  }
  // Every query meets half of the keys in a causal prefill and all of them in a decode step.
  const double pairs = static_cast<double>(B * T) * static_cast<double>(L) / (prefill ? 2 : 1);
  state.counters["FLOPs"] = benchmark::Counter(4 * pairs * static_cast<double>(config.hidden_size),
                                               benchmark::Counter::kIsIterationInvariantRate);
}

void register_all() {
  for (const auto& [name, plan] : plans_of_slot("prefill_attention")) {
    benchmark::RegisterBenchmark(
        ("prefill_attention/" + name).c_str(),
        [factory = plan.prefill_attention.factory()](benchmark::State& state) { run(state, factory, true); })
        ->ArgsProduct({{1, 8}, {16, 128, 512}})
        ->UseRealTime();
  }
  for (const auto& [name, plan] : plans_of_slot("decode_attention")) {
    benchmark::RegisterBenchmark(
        ("decode_attention/" + name).c_str(),
        [factory = plan.decode_attention.factory()](benchmark::State& state) { run(state, factory, false); })
        ->ArgsProduct({{1, 8, 32}, {128, 1024}})
        ->UseRealTime();
  }
}

}  // namespace
}  // namespace decodelab

int main(int argc, char** argv) { return decodelab::run_benchmarks(argc, argv, decodelab::register_all); }
