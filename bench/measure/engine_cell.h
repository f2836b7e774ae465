// One cell of one engine, run step by step: what visits, checks and traces share.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/measure/engine_batch.h"
#include "bench/measure/engine_worker.h"
#include "bench/plan/cell_fill.h"
#include "bench/plan/step_scope.h"
#include "engine/engine.h"

namespace decodelab {

/// Returns the bytes of the keys and values of so many rows of so many tokens.
std::int64_t key_bytes(const Engine& engine, std::int64_t rows, std::int64_t tokens);

/// Returns the decode steps that the model's positions leave after the cell's length, at most as many as any visit
/// runs.
std::int64_t decode_room(const ModelConfig& config, const CellRecord& cell);

/// Throws WorkerError where the rules of a row left no token.
void refuse_dead_end(const StepResult& result);

/// Keeps copies of the filled caches of one arm: a cell is filled once a launch, and restored at each visit.
///
/// All copies together hold at most kMostBytes: the least recently used ones are dropped first, and a larger one is not
/// kept.
class CacheSnapshots final {
 public:
  static constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

  struct Snapshot {
    FilledCache cache;
    std::vector<std::int64_t> first_tokens;  ///< One id a row, which the first decode step after it is fed.
  };

  /// Returns the snapshot of a decode cell's batch, length and fill; null where none is kept.
  const Snapshot* find(const CellRecord& cell);
  void keep(const CellRecord& cell, Snapshot snapshot);

  std::int64_t filling_ns = 0;  ///< Time spent on filling and restoring so far.

 private:
  using Key = std::tuple<std::int64_t, std::int64_t, std::string>;
  static Key key_of(const CellRecord& cell) { return {cell.batch, cell.length, cell.fill}; }

  std::list<std::pair<Key, Snapshot>> kept_;  ///< The most recently used first.
};

/// What the clock said of one step.
struct StepTime {
  std::int64_t wall_ns = 0;
  std::int64_t sample_ns = 0;  ///< What the cell's samples are: the same, but for some of phase batching.
};

/// Runs one cell of one engine step by step; rewind() goes back to the start where the scope of the cell says so. The
/// references that it is made with must outlive it.
class CellRunner final {
 public:
  CellRunner(const Engine& engine, const CellInput& input, const CellRecord& cell, std::int64_t slow_ns,
             CacheSnapshots& snapshots);

  /// Makes and fills the session of a cell that begins with keys, with room for `steps` decode steps or for one
  /// continuation. In other phases the next step makes its own session. Never timed.
  void prepare(std::int64_t steps);

  /// Runs one decode step and takes it back, so that what a session makes only in its first step is not counted later.
  /// Does nothing in phases that begin with a prefill.
  void discard_first_step();

  bool has_room() const { return steps_left_ > 0; }

  /// Runs one step: a decode step, a prefill with its session's allocation, a completion, some tokens more of each row,
  /// or all requests of a batch.
  /// Returns no tokens in the scope `forward` and in phase batching. With asynchronous read-back, a decode step returns
  /// the tokens of the step before it.
  StepResult step();
  /// Runs step(), and takes back what a continuation added, which is not timed.
  StepTime timed_step();
  /// Runs one round of a continuation: of an arm that guesses what one call of Session::speculate() says, of another
  /// one decode step. `wall_ns` is that of the round; `sample_ns` is 0 but where the round ends a continuation: then it
  /// is that of all its rounds, and they are taken back.
  StepTime timed_round();
  /// Returns the share of the present continuation that every row has said: 0 between two of them.
  double said_share() const { return run_ ? static_cast<double>(run_->said) / static_cast<double>(run_->tokens) : 0; }
  /// Lets the requests of phase batching come by decode steps from now on, not by the clock.
  void count_arrivals_in_steps() { arrivals_ = ArrivalClock::decode_steps; }
  /// Returns what each row said in the last step of an arm that speculates.
  const std::vector<std::vector<std::int64_t>>& said() const { return said_; }
  /// Returns what the last step of phase batching served.
  const ServedRequests& served() const { return served_; }
  const BatchWork& work() const { return work_; }
  /// Takes the last step back, if every step starts from the cell's length. Never timed.
  void rewind();
  /// Runs `steps` decode steps whose tokens are read only after the last one, and returns the nanoseconds of each,
  /// measured by events on the device, which must not be a CPU. Sets `whole_ns` to the time of all of them by the
  /// host's clock.
  std::vector<std::int64_t> visible_end_ns(std::int64_t steps, std::int64_t& whole_ns);

  const StepScope& scope() const { return scope_; }

  Session& session() { return *session_; }
  /// Returns one id a row: what the first decode step after prepare() is fed.
  const std::vector<std::int64_t>& first_tokens() const { return first_tokens_; }
  const std::vector<std::vector<std::int64_t>>& prompts() const { return prompts_; }
  void make_session(std::int64_t max_tokens);
  /// Makes a session of all samples of the prompts, which have chosen nothing yet.
  void begin(std::int64_t max_tokens);

 private:
  SessionOptions session_options(std::int64_t max_tokens) const;
  StepResult decode_step();
  /// Begins to go on until each row has said so many tokens, of which those of `first` are said.
  void begin_run(std::int64_t tokens, const StepResult& first = {});
  /// Runs one round of what begin_run() began. Returns whether that was the last.
  bool run_round();
  void speculate();
  /// Ends what begin_run() began, and returns the last tokens.
  StepResult end_run();
  /// Finds by plain decoding what rows will say, where the arm's guesses are made of it. Never timed.
  void foresee();
  void fill();
  /// Feeds the session of a decode cell its first tokens.
  void force_first();
  /// Brings the store that a prefill begins with, where the arm has one, to what it is before a step: it holds the
  /// prefixes of all prompts, and nothing else.
  void prepare_prefixes();
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
  std::vector<std::vector<std::int64_t>> said_;
  std::vector<std::vector<std::int64_t>> foreseen_;  ///< Empty where nobody wants to know.
  /// Holds how far rows have come on their way to so many tokens.
  struct Run {
    std::int64_t tokens = 0;
    std::int64_t said = 0;  ///< Of the row that is the furthest behind.
    StepResult last{};
    std::int64_t wall_ns = 0;  ///< Of the rounds that were timed so far.
  };
  std::optional<Run> run_;
  std::optional<Session> session_;
  std::int64_t session_tokens_ = 0;
  std::int64_t steps_left_ = 0;
  std::int64_t slow_ns_;
  StepScope scope_;
  CellFill fill_;
  std::int64_t held_;  ///< Tokens in each row of the cache when steps begin.
  CacheSnapshots& snapshots_;
  std::optional<PrefixStore> prefixes_;
  // Of phase batching.
  BatchWork work_;
  BatchingScope batching_;
  ArrivalClock arrivals_ = ArrivalClock::seconds;
  ServedRequests served_;
};

}  // namespace decodelab
