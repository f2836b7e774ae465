// What follows the last layer of SantaCoder, fp32: the head on all or the last positions, the choice of tokens, and
// their details.
#include "bench/micro/slot_plans.h"
#include "engine/layers/lm_head_rows.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/workspace.h"
#include "engine/sampling/chosen_tokens.h"
#include "engine/sampling/token_choice.h"
#include "engine/sampling/token_details.h"

namespace decodelab {
namespace {

std::vector<std::int64_t> rows_of(std::int64_t batch_size, std::int64_t value) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(batch_size), value);
}

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
    benchmark::DoNotOptimize(choice->choose(logits, nullptr, workspace));
  }
}

/// Arguments: batch and prompt length. No details are asked for: only what the policy computes anyway is computed.
void run_details(benchmark::State& state, const TokenDetailsFactory& factory) {
  const c10::InferenceMode inference;
  const ModelConfig config = santacoder();
  const std::int64_t batch = state.range(0);
  const std::int64_t length = state.range(1);
  const StepRows rows(rows_of(batch, 0), rows_of(batch, length), config.positions, at::kCPU);
  const at::Tensor all_logits = at::randn({batch, length, config.vocabulary_size});
  const at::Tensor last_logits = all_logits.select(1, length - 1);
  const at::Tensor ids = at::zeros({batch, length}, at::kLong);
  const std::vector<std::int64_t> chosen = rows_of(batch, 1);
  const DetailsRequest wanted = factory()->effective({});
  for (auto _ : state) {
    if (wanted.any()) {
      for (std::int64_t row = 0; wanted.prefill_log_probs && row < batch; ++row) {
        benchmark::DoNotOptimize(
            fed_log_probs({.all_logits = all_logits, .logits_before = {}, .ids = ids, .rows = rows}, row));
      }
      benchmark::DoNotOptimize(compute_token_details(last_logits, chosen, wanted));
    }
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
  for (const auto& [name, plan] : plans_of_slot("token_details")) {
    benchmark::RegisterBenchmark(
        ("token_details/" + name).c_str(),
        [factory = plan.token_details.factory()](benchmark::State& state) { run_details(state, factory); })
        ->ArgsProduct({{1, 8}, {16, 128}})
        ->UseRealTime();
  }
}

}  // namespace
}  // namespace decodelab

int main(int argc, char** argv) { return decodelab::run_benchmarks(argc, argv, decodelab::register_all); }
