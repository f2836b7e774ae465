// What sampling costs a step on SantaCoder's vocabulary, fp32: the warpers of both choices, and every generator,
// against the batch.
#include <fmt/format.h>

#include "bench/micro/slot_plans.h"
#include "engine/layers/workspace.h"
#include "engine/sampling/chosen_tokens.h"
#include "engine/sampling/rng.h"
#include "engine/sampling/token_choice.h"

namespace decodelab {
namespace {

const std::vector<std::int64_t> kBatches{1, 2, 4, 8, 16, 32, 64};

/// Sampling parameters of every row, by the name of what they cost.
const std::vector<std::pair<std::string, SamplingParameters>> kWishes{
    {"greedy", {}},
    {"plain", {.sample = true}},
    {"temperature", {.sample = true, .temperature = 0.8}},
    {"top-k", {.sample = true, .top_k = 50}},
    {"top-p", {.sample = true, .top_p = 0.95}},
    {"typical-p", {.sample = true, .typical_p = 0.95}},
    {"all", {.sample = true, .temperature = 0.8, .top_k = 50, .top_p = 0.95, .typical_p = 0.95}},
};

/// Logits about as peaked as a model's.
at::Tensor logits_of(std::int64_t batch_size) { return at::randn({batch_size, santacoder().vocabulary_size}) * 3; }

void count_rows(benchmark::State& state) {
  state.counters["per_row"] = benchmark::Counter(
      static_cast<double>(state.range(0)), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// Argument: batch. The whole choice of a step, drawn by the reference's generators.
void run_choice(benchmark::State& state, const TokenChoiceFactory& factory, const SamplingParameters& wishes) {
  const c10::InferenceMode inference;
  const std::vector<SamplingParameters> one{wishes};
  const auto choice = factory(
      {.rows = complete_sampling(one, state.range(0)), .device = "cpu", .make_rng = reference_plan().rng.factory()});
  const at::Tensor logits = logits_of(state.range(0));
  PlainWorkspace workspace;
  for (auto _ : state) {
    benchmark::DoNotOptimize(choice->choose({.logits = logits, .workspace = workspace}));
  }
  count_rows(state);
}

/// Argument: batch. The draw alone.
void run_rng(benchmark::State& state, const RngFactory& factory) {
  const c10::InferenceMode inference;
  const auto rng =
      factory({.seeds = std::vector<std::uint64_t>(static_cast<std::size_t>(state.range(0)), 1), .device = "cpu"});
  const at::Tensor probabilities = at::softmax(logits_of(state.range(0)), 1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(rng->draw(probabilities));
  }
  count_rows(state);
}

void register_all() {
  for (const auto& [name, plan] : plans_of_slot("token_choice")) {
    for (const auto& [what, wishes] : kWishes) {
      benchmark::RegisterBenchmark(fmt::format("token_choice/{}/{}", name, what).c_str(),
                                   [factory = plan.token_choice.factory(), asked = wishes](benchmark::State& state) {
                                     run_choice(state, factory, asked);
                                   })
          ->ArgsProduct({kBatches})
          ->UseRealTime();
    }
  }
  for (const auto& [name, plan] : plans_of_slot("rng")) {
    benchmark::RegisterBenchmark(("rng/" + name).c_str(),
                                 [factory = plan.rng.factory()](benchmark::State& state) { run_rng(state, factory); })
        ->ArgsProduct({kBatches})
        ->UseRealTime();
  }
}

}  // namespace
}  // namespace decodelab

int main(int argc, char** argv) { return decodelab::run_benchmarks(argc, argv, decodelab::register_all); }
