// The private parts of a session, for the engine's own files only: the steps that its functions are made of.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/engine_impl.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/step_tensors.h"
#include "engine/sampling/chosen_tokens.h"
#include "engine/sampling/top_tokens.h"
#include "engine/sequences/batch_state.h"
#include "engine/tensor.h"

namespace decodelab {

/// What a step chose, until somebody reads it.
struct UnreadStep {
  HostTokens tokens{};
  PendingDetails details{};                          ///< Empty where none are computed.
  std::vector<std::vector<TokenDetails>> prompts{};  ///< Details of each row's prompt, where there are details.
  std::vector<bool> exhausted{};
  std::vector<bool> texts{};  ///< Rows that want texts, where there are details.

  bool empty() const { return tokens.empty(); }
  /// Waits for all of it; null: there are no texts.
  StepResult read(const TokenText* text);
};

/// Holds for one call of a session: no gradients, and the threads that the plan's ranks have each.
class InCall {
 public:
  explicit InCall(const Engine::Impl& engine);
  ~InCall();
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;

 private:
  c10::InferenceMode inference_;
  std::int64_t threads_before_ = 0;  ///< 0: they are not changed.
};

/// Returns the tokens of all rows as one tensor [B, T], each row padded at its end with token 0. Throws
/// std::invalid_argument for ids outside of the vocabulary.
at::Tensor padded_ids(std::span<const std::vector<std::int64_t>> tokens, std::int64_t longest,
                      std::int64_t vocabulary_size);

struct Session::Impl {
  /// What steps of so many rows were run with.
  struct StepMemory {
    std::int64_t rows;
    std::unique_ptr<Workspace> workspace;
    std::unique_ptr<StepRunner> runner;
  };
  /// Numbers of rows whose step memory is kept, so that a batch whose rows come and go makes none anew.
  static constexpr std::size_t kMostSpare = 4;

  Impl(const Engine::Impl& of, const SessionOptions& asked);

  const Engine::Impl& engine;
  BatchState state;
  std::unique_ptr<Workspace> workspace;
  std::unique_ptr<StepRunner> runner;
  bool joins;                     ///< As in SessionOptions, until other rows come.
  std::int64_t rows_of_steps;     ///< Rows that both are for.
  std::vector<StepMemory> spare;  ///< Of other numbers of rows, the last used at the end.
  UnreadStep unread;
  std::unique_ptr<TokenText> text;  ///< Null where the session does not know the bytes of tokens.

  const Model::Impl& model() const { return engine.model->impl(); }
  std::int64_t batch_size() const { return state.batch_size(); }

  StepRows rows(std::vector<std::int64_t> added) const;
  StepRows rows(std::vector<std::int64_t> added, PrefillLayout layout) const;
  StepRows rows_of_one_length(std::int64_t added) const;
  std::vector<std::int64_t> all_rows() const;
  std::unique_ptr<TokenHistory> new_history() const;
  /// Makes the choice anew, with the sampling parameters of the state.
  void renew_choice();
  /// Takes the step memory and the runner of as many rows as the batch has now: those that it had when it last had so
  /// many, or new ones. What the old ones hold has the shapes of another batch.
  void renew_steps();
  /// Prepares decode steps on the cache as it is now, unless rows will join another session first.
  void prepare_steps();
  void refuse_unread(const char* what) const;
  /// Refuses to feed what was chosen last where nothing was.
  void refuse_without_next(const char* what) const;
  /// Checks that the rows of `other` can join, for the function `what`, and gives both sides the same parts.
  void make_alike(Impl& other, const char* what);

  /// Returns the cache of a plan that shares the pages of prefixes.
  PageSharing& shared_pages() const { return dynamic_cast<PageSharing&>(*state.cache); }

  /// Refuses what fills a session with keys and values where it keeps none.
  void refuse_without_cache(const char* what) const;
  /// Refuses what gives or takes keys and values of some tokens where other ranks hold a part of them.
  void refuse_on_ranks(const char* what) const;

  /// Tokens on their way through the layers.
  struct Feed {
    at::Tensor ids;
    StepRows rows;
    std::vector<std::int64_t> again{};  ///< Tokens of each row that were fed before; empty: none.
  };
  ForwardStep step_of(const StepRows& rows) const;
  /// Checks tokens to feed, and brings them to the device. Where an encoder reads them, returns what the decoder begins
  /// with.
  Feed begin_tokens(std::span<const std::vector<std::int64_t>> tokens);
  /// Feeds tokens, and sets last_logits of the rows that got some.
  void feed(const Feed& fed);
  /// Runs a decode step up to its logits, once the proposer knows the next tokens. Throws std::logic_error where it
  /// does not know its input.
  void decode_forward();
  /// Returns the logits of hidden states [N, d].
  at::Tensor head(const at::Tensor& hidden) { return engine.transformer->head(hidden, *workspace); }
  /// Tells the proposer the next tokens, and runs a decode step up to its logits.
  void decode_step();
  /// Chooses a token for each row. Leaves tokens and details in `unread`.
  void choose();
  /// What some rows say next.
  struct Chosen {
    at::Tensor ids;  ///< [N, 1] int64 on the device.
    UnreadStep step;
  };
  /// Names a token for each line of logits [N, V], which are those after masks.
  using Chooser = std::function<ChosenTokens(const at::Tensor& allowed)>;
  /// Chooses for `rows`, in rising order, which will be fed their tokens at `positions`, from `logits` [N, V]; null:
  /// for all rows. Without a chooser, the session's own choice.
  Chosen choose_from(const at::Tensor& logits, std::span<const std::int64_t> positions,
                     const std::vector<std::int64_t>* rows, const Chooser& chooser = {});
  class PassRound;  ///< The logits of a pass over guesses, and what rows say from them.
  /// Tells the proposer, if any, what each row is fed.
  void tell_proposer(std::span<const std::vector<std::int64_t>> tokens);
  /// Tells it that each row holds so many tokens, of which nothing is known.
  void tell_unknown(std::int64_t tokens);
  /// Tells it the tokens that rows are fed next.
  void tell_next();
  /// Throws what the function `what` throws where no round can begin, or `values` came of another number of rows.
  void check_round(const char* what, const char* values, std::size_t rows) const;
  /// Runs the layers on the next tokens and the guesses behind them, ids [B, T], and lets the rows hold them.
  Verified pass(const at::Tensor& ids, const StepRows& rows);
  /// Returns the proposer's guesses, at most budgets[row] of each row.
  std::vector<std::vector<std::int64_t>> propose(std::span<const std::int64_t> budgets);
  /// Does what Session::verify() does, once the proposer knows the next tokens; `proposer` made the guesses, if any.
  std::vector<RowRun> verify(std::span<const std::vector<std::int64_t>> guesses, const Proposer* proposer);
  /// The same without guesses: a decode step.
  std::vector<RowRun> step_alone();
  /// Returns the tokens that rows will be fed next. Throws std::logic_error where they are not known.
  std::vector<std::int64_t> next_tokens() const;
  /// Returns what a step left, and leaves nothing.
  StepResult read() { return std::exchange(unread, {}).read(text.get()); }

 private:
  Feed encode(std::span<const std::vector<std::int64_t>> tokens, const at::Tensor& ids, StepRows& prompts);
  /// Feeds all tokens of every row from position 0, where the cache keeps nothing.
  Feed all_tokens_again();
  StepRows begin_decode();
  /// Runs the layers on tokens and sets last_logits; `logits_before` are those of the tokens before them.
  void set_logits(const Feed& fed, const at::Tensor& logits_before, bool adds_details);
  /// Starts the details of the tokens `ids` that `rows` chose from `logits`, or of these from `allowed`, the logits
  /// after masks.
  PendingDetails start_details(const at::Tensor& logits, const at::Tensor& allowed, const at::Tensor& ids,
                               const std::vector<std::int64_t>& rows);
  /// Computes the details of tokens that were fed, `piece` of a row at a time; `logits_of` returns the logits [count,
  /// V] of positions in [B * T] or [S].
  void add_prompt_details(const Feed& fed, const at::Tensor& logits_before, std::int64_t piece,
                          const std::function<at::Tensor(std::int64_t first, std::int64_t count)>& logits_of);
};

}  // namespace decodelab
