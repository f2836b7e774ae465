// One cell of one engine, run step by step: what visits, checks and traces share.
#pragma once

#include "bench/measure/engine_worker.h"
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

  /// One step: a decode step, a prefill with its session's allocation, or a completion.
  StepResult step();
  std::int64_t timed_step_ns();

  Session& session() { return *session_; }
  /// What the first decode step after prepare() is fed.
  const std::vector<std::int64_t>& first_tokens() const { return first_tokens_; }
  const std::vector<std::vector<std::int64_t>>& prompts() const { return prompts_; }
  void make_session(std::int64_t max_tokens);

 private:
  const Engine& engine_;
  const CellInput& input_;
  const CellRecord& cell_;
  std::vector<std::vector<std::int64_t>> prompts_;
  std::vector<std::int64_t> first_tokens_;
  std::optional<Session> session_;
  std::int64_t steps_left_ = 0;
  std::int64_t slow_ns_;
};

}  // namespace decodelab
