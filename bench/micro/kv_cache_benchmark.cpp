// Eight decode steps' appends to one layer's cache of SantaCoder, fp32: arguments are batch and the length held before.
#include "engine/layers/kv_cache.h"

#include "bench/micro/slot_plans.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/step_tensors.h"

namespace decodelab {
namespace {

/// One period of the growing variants.
constexpr std::int64_t kSteps = 8;

void run(benchmark::State& state, const KvCacheFactory& factory) {
  const c10::InferenceMode inference;
  const ModelConfig config = santacoder();
  const std::int64_t batch = state.range(0);
  const std::int64_t length = state.range(1);
  const auto rows_of = [batch](std::int64_t value) {
    return std::vector<std::int64_t>(static_cast<std::size_t>(batch), value);
  };
  const at::Tensor prompt = at::randn({batch, length, config.kv_width()});
  const at::Tensor token = at::randn({batch, 1, config.kv_width()});
  const KvCacheOptions options{.layers = 1,
                               .batch_size = batch,
                               .width = config.kv_width(),
                               .max_tokens = length + kSteps,
                               .positions = config.positions,
                               .dtype = ElementType::float32,
                               .device = "cpu"};
  for (auto _ : state) {
    state.PauseTiming();
    const auto cache = factory(options);
    const StepRows filled(rows_of(0), rows_of(length), config.positions, at::kCPU);
    cache->append(0, prompt, filled);
    cache->advance(filled);
    state.ResumeTiming();
    for (std::int64_t step = 0; step < kSteps; ++step) {
      const StepRows rows(cache->lengths(), rows_of(1), config.positions, at::kCPU);
      benchmark::DoNotOptimize(cache->append(0, token, rows));
      cache->advance(rows);
    }
  }
  state.SetItemsProcessed(state.iterations() * kSteps);
}

void register_all() {
  for (const auto& [name, plan] : plans_of_slot("kv_growth")) {
    benchmark::RegisterBenchmark(("kv_growth/" + name).c_str(),
                                 [factory = plan.kv_growth.factory()](benchmark::State& state) { run(state, factory); })
        ->ArgsProduct({{1, 8, 32}, {128, 1024}})
        ->UseRealTime();
  }
}

}  // namespace
}  // namespace decodelab

int main(int argc, char** argv) { return decodelab::run_benchmarks(argc, argv, decodelab::register_all); }
