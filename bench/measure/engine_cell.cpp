// Makes the sessions of a cell and runs its steps.
#include "bench/measure/engine_cell.h"

#include "bench/measure/steps.h"
#include "bench/measure/timed_step.h"
#include "bench/measure/warmup.h"
#include "bench/plan/prompts.h"

#include <algorithm>

namespace decodelab {

std::int64_t decode_room(const ModelConfig& config, const CellRecord& cell) {
  return std::min(config.positions - cell.length, std::max(kMaximumSteps, kWarmupMaximumSteps));
}

CellRunner::CellRunner(const Engine& engine, const CellInput& input, const CellRecord& cell, std::int64_t slow_ns)
    : engine_(engine), input_(input), cell_(cell), slow_ns_(slow_ns) {
  const ModelConfig& config = engine.model().config();
  if (cell.phase != "decode" || cell.fill == "generated") {
    prompts_ = random_prompts(input.seed, cell.batch, cell.length, config.vocabulary_size);
  }
  if (cell.phase == "decode" && cell.fill != "generated") {
    for (const auto& prompt : random_prompts(input.seed + 1, cell.batch, 1, config.vocabulary_size)) {
      first_tokens_.push_back(prompt.front());
    }
  }
}

void CellRunner::prepare(std::int64_t steps) {
  session_.reset();
  steps_left_ = cell_.phase == "decode" ? steps : 1;
  if (cell_.phase != "decode") {
    return;
  }
  make_session(cell_.length + steps);
  if (cell_.fill == "generated") {
    first_tokens_ = session_->prefill(prompts_).token_ids;
  } else {
    session_->fill_random(cell_.length, input_.seed);
    session_->force_tokens(first_tokens_);
  }
}

void CellRunner::settle() {
  if (cell_.phase == "decode") {
    session_->decode();
    session_->truncate(cell_.length);
    session_->force_tokens(first_tokens_);
  }
}

StepResult CellRunner::step() {
  --steps_left_;
  if (cell_.phase == "decode") {
    return session_->decode();
  }
  const std::int64_t new_tokens = cell_.phase == "generate" ? input_.max_tokens - 1 : 0;
  make_session(cell_.length + new_tokens);
  StepResult result = session_->prefill(prompts_);
  for (std::int64_t token = 0; token < new_tokens; ++token) {
    result = session_->decode();
  }
  return result;
}

std::int64_t CellRunner::timed_step_ns() {
  return timed_ns([this] { step(); }, engine_.model().device(), slow_ns_);
}

void CellRunner::make_session(std::int64_t max_tokens) {
  session_.emplace(
      engine_, SessionOptions{
                   .batch_size = cell_.batch, .max_tokens = max_tokens, .details = {}, .sampling = {input_.sampling}});
}

}  // namespace decodelab
