// One cell of one engine, run step by step: what visits, checks and traces share.
#pragma once

#include "bench/measure/engine_worker.h"
#include "bench/plan/step_scope.h"
#include "engine/engine.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace decodelab {

/// Decode steps that the model's positions leave after the cell's length, as far as any visit goes.
std::int64_t decode_room(const ModelConfig& config, const CellRecord& cell);

/// Runs one cell of one engine step by step, restarting where the cell says so. What it is made with must outlive it.
class CellRunner final {
 public:
  CellRunner(const Engine& engine, const CellInput& input, const CellRecord& cell, std::int64_t slow_ns);

  /// Puts the session where the next step may run; `steps` decode steps must fit after it. Never timed.
  void prepare(std::int64_t steps);

  /// Makes what a session makes in its first step, and takes the step back: what is counted after it is what every step does.
  void settle();

  bool has_room() const { return steps_left_ > 0; }

  /// One step: a decode step, a prefill with its session's allocation, or a completion. Without tokens in the scope `forward`; of an
  /// engine that reads late, a decode step's are those of the step before.
  StepResult step();
  std::int64_t timed_step_ns();
  /// Takes the last decode step back where every step starts from the cell's length. Never timed.
  void rewind();
  /// Times of `steps` decode steps whose tokens are read at their end, by marks on the device, which is no CPU; `whole_ns` becomes the
  /// host's clock around all of them.
  std::vector<std::int64_t> visible_end_ns(std::int64_t steps, std::int64_t& whole_ns);

  const StepScope& scope() const { return scope_; }

  Session& session() { return *session_; }
  /// What the first decode step after prepare() is fed.
  const std::vector<std::int64_t>& first_tokens() const { return first_tokens_; }
  const std::vector<std::vector<std::int64_t>>& prompts() const { return prompts_; }
  void make_session(std::int64_t max_tokens);

 private:
  StepResult decode_step();

  const Engine& engine_;
  const CellInput& input_;
  const CellRecord& cell_;
  std::vector<std::vector<std::int64_t>> prompts_;
  std::vector<std::int64_t> first_tokens_;
  std::optional<Session> session_;
  std::int64_t steps_left_ = 0;
  std::int64_t slow_ns_;
  StepScope scope_;
};

}  // namespace decodelab
