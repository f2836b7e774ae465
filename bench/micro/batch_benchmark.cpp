// What continuous batching pays for: a filter and a concatenate of one layer's cache of SantaCoder, fp32; arguments are
// batch and length held.
#include "bench/micro/slot_plans.h"
#include "engine/layers/kv_cache.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/step_tensors.h"

namespace decodelab {
namespace {

/// Room for a step after the operation.
constexpr std::int64_t kRoom = 8;

/// A cache of `rows` rows that hold `length` tokens each.
std::unique_ptr<KvCache> filled(const KvCacheFactory& factory, std::int64_t rows, std::int64_t length) {
  const ModelConfig config = santacoder();
  auto cache = factory({.layers = 1,
                        .batch_size = rows,
                        .width = config.kv_width(),
                        .max_tokens = length + kRoom,
                        .positions = config.positions,
                        .dtype = ElementType::float32,
                        .device = "cpu"});
  const StepRows step(cache->lengths(), std::vector<std::int64_t>(static_cast<std::size_t>(rows), length),
                      config.positions, at::kCPU);
  cache->append(0, at::zeros({rows, length, config.kv_width()}), step);
  cache->advance(step);
  return cache;
}

std::int64_t row_bytes(std::int64_t length) {
  return length * santacoder().kv_width() * static_cast<std::int64_t>(sizeof(float));
}

/// Drops every second row.
void run_filter(benchmark::State& state, const KvCacheFactory& factory) {
  const c10::InferenceMode inference;
  const std::int64_t batch = state.range(0);
  const std::int64_t length = state.range(1);
  std::vector<std::int64_t> kept;
  for (std::int64_t row = 0; row < batch; row += 2) {
    kept.push_back(row);
  }
  for (auto _ : state) {
    state.PauseTiming();
    auto cache = filled(factory, batch, length);
    state.ResumeTiming();
    cache->select(kept);
    benchmark::ClobberMemory();
    state.PauseTiming();
    cache.reset();
    state.ResumeTiming();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kept.size()) * row_bytes(length));
}

/// Puts one arriving row under the others of its length.
void run_concatenate(benchmark::State& state, const KvCacheFactory& factory) {
  const c10::InferenceMode inference;
  const std::int64_t batch = state.range(0);
  const std::int64_t length = state.range(1);
  for (auto _ : state) {
    state.PauseTiming();
    auto cache = filled(factory, batch, length);
    auto arriving = filled(factory, 1, length);
    state.ResumeTiming();
    cache->append(*arriving);
    benchmark::ClobberMemory();
    state.PauseTiming();
    cache.reset();
    arriving.reset();
    state.ResumeTiming();
  }
  state.SetBytesProcessed(state.iterations() * (batch + 1) * row_bytes(length));
}

void register_all() {
  using Run = void (*)(benchmark::State&, const KvCacheFactory&);
  for (const auto& [operation, run] : {std::pair<const char*, Run>("filter", run_filter),
                                       std::pair<const char*, Run>("concatenate", run_concatenate)}) {
    for (const auto& [name, plan] : plans_of_slot("kv_growth")) {
      benchmark::RegisterBenchmark(
          (std::string(operation) + "/" + name).c_str(),
          [run, factory = plan.kv_growth.factory()](benchmark::State& state) { run(state, factory); })
          ->ArgsProduct({{2, 8, 32}, {128, 1024}})
          ->UseRealTime();
    }
  }
}

}  // namespace
}  // namespace decodelab

int main(int argc, char** argv) { return decodelab::run_benchmarks(argc, argv, decodelab::register_all); }
