// Prefill and decode attention of one SantaCoder layer, fp32 and bf16: arguments are batch and length.
#include "engine/layers/attention.h"

#include "bench/micro/slot_plans.h"
#include "engine/layers/softmax.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/workspace.h"

namespace decodelab {
namespace {

void run(benchmark::State& state, const AttentionFactory& factory, bool prefill, at::ScalarType dtype) {
  const c10::InferenceMode inference;
  const ModelConfig config = santacoder();
  const std::int64_t batch = state.range(0);
  const std::int64_t length = state.range(1);
  const std::int64_t tokens = prefill ? length : 1;
  const auto rows_of = [batch](std::int64_t value) {
    return std::vector<std::int64_t>(static_cast<std::size_t>(batch), value);
  };
  const at::Tensor query = at::randn({batch, tokens, config.hidden_size}, dtype);
  const at::Tensor keys = at::randn({batch, length, config.head_dim}, dtype);
  const at::Tensor values = at::randn({batch, length, config.head_dim}, dtype);
  const auto attention = factory(attention_shape(config), make_unfused_softmax);
  PlainWorkspace workspace;
  for (auto _ : state) {
    const StepRows rows(rows_of(length - tokens), rows_of(tokens), config.positions, at::kCPU);
    benchmark::DoNotOptimize(attention->forward(
        {.layer = 0, .query = query, .keys = keys, .values = values, .rows = rows, .workspace = workspace}));
  }
  // Every query attends to half of the keys in a causal prefill, and to all of them in a decode step.
  const double pairs = static_cast<double>(batch * tokens) * static_cast<double>(length) / (prefill ? 2 : 1);
  state.counters["FLOPs"] = benchmark::Counter(4 * pairs * static_cast<double>(config.hidden_size),
                                               benchmark::Counter::kIsIterationInvariantRate);
}

void register_slot(const char* slot, const std::string& name, const AttentionFactory& factory, bool prefill,
                   const std::vector<std::vector<std::int64_t>>& sizes) {
  for (const auto& [dtype_name, dtype] : {std::pair("fp32", at::kFloat), std::pair("bf16", at::kBFloat16)}) {
    benchmark::RegisterBenchmark(
        (slot + ("/" + name + "/") + dtype_name).c_str(),
        [factory, prefill, dtype = dtype](benchmark::State& state) { run(state, factory, prefill, dtype); })
        ->ArgsProduct(sizes)
        ->UseRealTime();
  }
}

void register_all() {
  for (const auto& [name, plan] : plans_of_slot("prefill_attention")) {
    register_slot("prefill_attention", name, plan.prefill_attention.factory(), true, {{1, 8}, {16, 128, 512}});
  }
  for (const auto& [name, plan] : plans_of_slot("decode_attention")) {
    register_slot("decode_attention", name, plan.decode_attention.factory(), false, {{1, 8, 32}, {128, 1024}});
  }
}

}  // namespace
}  // namespace decodelab

int main(int argc, char** argv) { return decodelab::run_benchmarks(argc, argv, decodelab::register_all); }
