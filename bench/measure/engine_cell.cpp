// Makes the sessions of a cell and runs its steps.
#include "bench/measure/engine_cell.h"

#include "bench/measure/steps.h"
#include "bench/measure/timed_step.h"
#include "bench/measure/torch_step_events.h"
#include "bench/measure/warmup.h"
#include "bench/plan/prompts.h"

#include <algorithm>

namespace decodelab {
namespace {

/// The scope of whole completions has a name of its own and no parts.
StepScope scope_of_cell(const CellRecord& cell) {
  return cell.phase == "generate" ? StepScope{} : step_scope_from_string(cell.scope);
}

}  // namespace

std::int64_t decode_room(const ModelConfig& config, const CellRecord& cell) {
  return std::min(config.positions - cell.length, std::max(kMaximumSteps, kWarmupMaximumSteps));
}

CellRunner::CellRunner(const Engine& engine, const CellInput& input, const CellRecord& cell, std::int64_t slow_ns)
    : engine_(engine), input_(input), cell_(cell), slow_ns_(slow_ns), scope_(scope_of_cell(cell)) {
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
    return decode_step();
  }
  const std::int64_t new_tokens = cell_.phase == "generate" ? input_.max_tokens - 1 : 0;
  make_session(cell_.length + new_tokens);
  if (scope_.forward) {
    session_->forward(prompts_);
    return {};
  }
  StepResult result = session_->prefill(prompts_);
  for (std::int64_t token = 0; token < new_tokens; ++token) {
    result = decode_step();
  }
  return engine_.reads_late() && new_tokens > 0 ? session_->read_last() : result;
}

StepResult CellRunner::decode_step() {
  if (scope_.forward) {
    session_->forward();
    return {};
  }
  return engine_.reads_late() ? session_->decode_ahead() : session_->decode();
}

void CellRunner::rewind() {
  if (scope_.at_length) {
    session_->truncate(cell_.length);
    session_->force_tokens(first_tokens_);
  }
}

std::vector<std::int64_t> CellRunner::visible_end_ns(std::int64_t steps, std::int64_t& whole_ns) {
  StepEvents events(engine_.model().device(), steps);
  whole_ns = timed_ns(
      [&] {
        events.mark();
        for (std::int64_t step = 0; step < steps; ++step) {
          session_->issue();
          events.mark();
        }
        session_->read_last();
      },
      engine_.model().device(), slow_ns_ * steps);
  return events.step_ns();
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
