// What follows the last layer of SantaCoder, fp32: the head on all or the last positions, the choice of tokens, and
// their details.
#include "bench/micro/slot_plans.h"
#include "engine/layers/lm_head_rows.h"
#include "engine/layers/workspace.h"
#include "engine/sampling/chosen_tokens.h"
#include "engine/sampling/token_choice.h"
#include "engine/sampling/top_tokens.h"

namespace decodelab {
namespace {

/// Arguments: batch and prompt length.
void run_head(benchmark::State& state, const LmHeadRowsFactory& factory) {
  const c10::InferenceMode inference;
  const ModelConfig config = santacoder();
  const std::int64_t rows = factory()->all_positions({}) ? state.range(0) * state.range(1) : state.range(0);
  const at::Tensor hidden = at::randn({rows, config.hidden_size});
  const at::Tensor embedding = at::randn({config.vocabulary_size, config.hidden_size});
  for (auto _ : state) {
    benchmark::DoNotOptimize(at::linear(hidden, embedding));
  }
  state.counters["rows"] = static_cast<double>(rows);
}

/// Argument: batch.
void run_choice(benchmark::State& state, const TokenChoiceFactory& factory) {
  const c10::InferenceMode inference;
  const at::Tensor logits = at::randn({state.range(0), santacoder().vocabulary_size});
  const auto choice = factory({});
  PlainWorkspace workspace;
  for (auto _ : state) {
    benchmark::DoNotOptimize(choice->choose({.logits = logits, .workspace = workspace}));
  }
}

/// Arguments: batch and most probable tokens; 0: log-probability and rank alone.
void run_details(benchmark::State& state, const TopTokensFactory& factory, at::ScalarType type) {
  const c10::InferenceMode inference;
  const at::Tensor logits = (at::randn({state.range(0), santacoder().vocabulary_size}) * 4).to(type);
  const at::Tensor ids = logits.argmax(1, true);
  const TokenRequest wanted{.log_prob = true, .rank = true, .top = state.range(1)};
  const std::vector<const TokenRequest*> of_rows(static_cast<std::size_t>(state.range(0)), &wanted);
  const auto top_tokens = factory();
  for (auto _ : state) {
    benchmark::DoNotOptimize(top_tokens->start({.logits = logits, .ids = ids, .wanted = of_rows})());
  }
}

void register_all() {
  for (const auto& [name, plan] : plans_of_slot("lm_head_rows")) {
    benchmark::RegisterBenchmark(
        ("lm_head_rows/" + name).c_str(),
        [factory = plan.lm_head_rows.factory()](benchmark::State& state) { run_head(state, factory); })
        ->ArgsProduct({{1, 8}, {16, 128}})
        ->UseRealTime();
  }
  for (const auto& [name, plan] : plans_of_slot("token_choice")) {
    benchmark::RegisterBenchmark(
        ("token_choice/" + name).c_str(),
        [factory = plan.token_choice.factory()](benchmark::State& state) { run_choice(state, factory); })
        ->Arg(1)
        ->Arg(8)
        ->Arg(64)
        ->UseRealTime();
  }
  for (const auto& [name, plan] : plans_of_slot("top_tokens")) {
    for (const auto& [dtype, type] : {std::pair("fp32", at::kFloat), std::pair("bf16", at::kBFloat16)}) {
      benchmark::RegisterBenchmark(("top_tokens/" + name + "/" + dtype).c_str(),
                                   [factory = plan.top_tokens.factory(), type = type](benchmark::State& state) {
                                     run_details(state, factory, type);
                                   })
          ->ArgsProduct({{1, 64}, {0, 5, 20, 64}})
          ->UseRealTime();
    }
  }
}

}  // namespace
}  // namespace decodelab

int main(int argc, char** argv) { return decodelab::run_benchmarks(argc, argv, decodelab::register_all); }
