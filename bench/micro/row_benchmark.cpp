// Norms and softmaxes of SantaCoder's shapes by each variant, fp32: bytes a second, to be compared with the machine's
// own.
#include "bench/micro/slot_plans.h"
#include "engine/layers/residual_norm.h"
#include "engine/layers/softmax.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/workspace.h"

namespace decodelab {
namespace {

/// Argument: rows.
void run_norm(benchmark::State& state, const ResidualNormFactory& factory) {
  const c10::InferenceMode inference;
  const std::int64_t d = santacoder().hidden_size;
  const at::Tensor weight = at::ones({d});
  const at::Tensor bias = at::zeros({d});
  const auto norm = factory({.weight = weight, .bias = &bias, .epsilon = 1e-5});
  const at::Tensor addend = at::randn({state.range(0), 1, d});
  const at::Tensor residual = at::randn({state.range(0), 1, d});
  PlainWorkspace workspace;
  for (auto _ : state) {
    benchmark::DoNotOptimize(norm->forward(addend, residual, workspace));
  }
  // Two tensors are read, and two are written.
  state.SetBytesProcessed(state.iterations() * 4 * static_cast<std::int64_t>(addend.nbytes()));
}

/// Arguments: batch and keys of a decode step.
void run_softmax(benchmark::State& state, const SoftmaxFactory& factory) {
  const c10::InferenceMode inference;
  const std::int64_t batch = state.range(0);
  const std::int64_t keys = state.range(1);
  const ModelConfig config = santacoder();
  const StepRows rows(std::vector<std::int64_t>(static_cast<std::size_t>(batch), keys - 1),
                      std::vector<std::int64_t>(static_cast<std::size_t>(batch), 1), config.positions, at::kCPU);
  const at::Tensor scores = at::randn({batch, 1, 1, config.heads, keys});
  const auto softmax = factory();
  PlainWorkspace workspace;
  for (auto _ : state) {
    benchmark::DoNotOptimize(softmax->forward(
        {.scores = scores, .bias = nullptr, .rows = rows, .upcast = false, .unscale = 1, .workspace = workspace}));
  }
  state.SetBytesProcessed(state.iterations() * 2 * static_cast<std::int64_t>(scores.nbytes()));
}

void register_all() {
  for (const auto& [name, plan] : plans_of_slot("residual_norm")) {
    benchmark::RegisterBenchmark(
        ("residual_norm/" + name).c_str(),
        [factory = plan.residual_norm.factory()](benchmark::State& state) { run_norm(state, factory); })
        ->ArgName("rows")
        ->Arg(1)
        ->Arg(32)
        ->Arg(256)
        ->UseRealTime();
  }
  for (const auto& [name, plan] : plans_of_slot("softmax")) {
    benchmark::RegisterBenchmark(
        ("softmax/" + name).c_str(),
        [factory = plan.softmax.factory()](benchmark::State& state) { run_softmax(state, factory); })
        ->ArgsProduct({{1, 32}, {128, 2048}})
        ->UseRealTime();
  }
}

}  // namespace
}  // namespace decodelab

int main(int argc, char** argv) { return decodelab::run_benchmarks(argc, argv, decodelab::register_all); }
