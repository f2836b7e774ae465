// One cell of one engine, run step by step: what visits, checks and traces share.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/measure/engine_worker.h"
#include "bench/plan/step_scope.h"
#include "engine/engine.h"

namespace decodelab {

/// Decode steps that the model's positions leave after the cell's length, as far as any visit goes.
std::int64_t decode_room(const ModelConfig& config, const CellRecord& cell);

/// Filled caches of the cells of one arm: a cell is filled once a launch, and restored at each visit.
///
/// They hold kMostBytes at most; the one that was used longest ago goes first, and one that is larger is not kept.
class CacheSnapshots final {
 public:
  static constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

  struct Snapshot {
    FilledCache cache;
    std::vector<std::int64_t> first_tokens;  ///< What the first decode step after it is fed.
  };

  /// That of a decode cell's batch, length and fill; null where there is none.
  const Snapshot* find(const CellRecord& cell);
  void keep(const CellRecord& cell, Snapshot snapshot);

  std::int64_t filling_ns = 0;  ///< What filling and restoring has taken until now.

 private:
  using Key = std::tuple<std::int64_t, std::int64_t, std::string>;
  static Key key_of(const CellRecord& cell) { return {cell.batch, cell.length, cell.fill}; }

  std::list<std::pair<Key, Snapshot>> kept_;  ///< The last used first.
};

/// Runs one cell of one engine step by step, restarting where the cell says so. What it is made with must outlive it.
class CellRunner final {
 public:
  CellRunner(const Engine& engine, const CellInput& input, const CellRecord& cell, std::int64_t slow_ns,
             CacheSnapshots& snapshots);

  /// Puts the session where the next step may run; `steps` decode steps must fit after it. Never timed.
  void prepare(std::int64_t steps);

  /// Makes what a session makes in its first step, and takes the step back: what is counted after it is what every step
  /// does.
  void discard_first_step();

  bool has_room() const { return steps_left_ > 0; }

  /// One step: a decode step, a prefill with its session's allocation, or a completion. Without tokens in the scope
  /// `forward`; of an engine that reads late, a decode step's are those of the step before.
  StepResult step();
  std::int64_t timed_step_ns();
  /// Takes the last decode step back where every step starts from the cell's length. Never timed.
  void rewind();
  /// Times of `steps` decode steps whose tokens are read at their end, by marks on the device, which is no CPU;
  /// `whole_ns` becomes the host's clock around all of them.
  std::vector<std::int64_t> visible_end_ns(std::int64_t steps, std::int64_t& whole_ns);

  const StepScope& scope() const { return scope_; }

  Session& session() { return *session_; }
  /// What the first decode step after prepare() is fed.
  const std::vector<std::int64_t>& first_tokens() const { return first_tokens_; }
  const std::vector<std::vector<std::int64_t>>& prompts() const { return prompts_; }
  void make_session(std::int64_t max_tokens);

 private:
  StepResult decode_step();
  void fill();
  std::string kept_key() const;
  /// Fills the session with what an earlier process prefilled for the same arm, cell and build; false where there is
  /// nothing.
  bool restore_kept();
  void keep(const FilledCache& filled) const;

  const Engine& engine_;
  const CellInput& input_;
  const CellRecord& cell_;
  std::vector<std::vector<std::int64_t>> prompts_;
  std::vector<std::int64_t> first_tokens_;
  std::optional<Session> session_;
  std::int64_t session_tokens_ = 0;
  std::int64_t steps_left_ = 0;
  std::int64_t slow_ns_;
  StepScope scope_;
  CacheSnapshots& snapshots_;
};

}  // namespace decodelab
