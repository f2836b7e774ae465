// Rounds of speculation: one pass over guesses of several tokens a row, of which those stand that the row would have
// said.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "engine/kernels/philox.h"
#include "engine/layers/transformer.h"
#include "engine/sampling/acceptance.h"
#include "engine/sampling/highest_logits.h"
#include "engine/sampling/token_choice.h"
#include "engine/session_impl.h"
#include "profiles/range.h"

namespace decodelab {
namespace {

/// Parts the random numbers of rounds from those of a row's own choice.
constexpr std::uint64_t kSeedOfRounds = 0x726f756e64;

void count(const std::vector<RowRun>& runs) {
  std::int64_t proposed = 0;
  std::int64_t accepted = 0;
  std::int64_t emitted = 0;
  for (const RowRun& run : runs) {
    proposed += run.proposed;
    accepted += run.accepted;
    emitted += std::ssize(run.token_ids);
  }
  count_amount(Amount::rounds, 1);
  count_amount(Amount::proposed_tokens, proposed);
  count_amount(Amount::accepted_tokens, accepted);
  count_amount(Amount::emitted_tokens, emitted);
  count_amount(Amount::verified_rows, proposed + std::ssize(runs));
}

}  // namespace

/// The logits of a pass, and what rows say from them.
class Session::Impl::PassRound final : public Round {
 public:
  /// `logits` [S, V] are those of the tokens that each row was fed: row after row, the guesses behind one other token.
  /// `past` counts what each row held before.
  PassRound(Session::Impl& session, std::span<const std::vector<std::int64_t>> guesses, const Proposer* proposer,
            at::Tensor logits, std::vector<std::int64_t> past)
      : session_(session),
        proposer_(proposer),
        guesses_(guesses.begin(), guesses.end()),
        logits_(std::move(logits)),
        past_(std::move(past)),
        runs_(guesses_.size()) {
    std::int64_t begin = 0;
    for (const std::vector<std::int64_t>& row : guesses_) {
      begins_.push_back(begin);
      begin += 1 + std::ssize(row);
    }
  }

  const std::vector<std::vector<std::int64_t>>& guesses() const override { return guesses_; }

  std::vector<std::int64_t> choose(std::int64_t position, const std::vector<std::int64_t>& rows) override {
    return choose_by({}, position, rows);
  }

  bool draws(std::int64_t row) const override {
    return session_.state.sampling.values[static_cast<std::size_t>(row)].sample;
  }

  std::vector<std::int64_t> pick(std::int64_t position, const std::vector<std::int64_t>& rows,
                                 const Picker& picker) override {
    const auto chooser = [&](const at::Tensor& allowed) -> ChosenTokens {
      const at::Tensor scores =
          processed_logits(allowed, session_.state.history.get(), session_.state.sampling.values, rows);
      std::vector<std::int64_t> picked = picker(at::softmax(scores, 1).to(at::kCPU, at::kDouble));
      at::Tensor device = at::tensor(picked, at::kLong).unsqueeze(1).to(allowed.device());
      return {.host = HostTokens(std::move(picked)), .device = std::move(device)};
    };
    return choose_by(chooser, position, rows);
  }

  const at::Tensor* drawn_from(std::int64_t row) const override {
    return proposer_ == nullptr ? nullptr : proposer_->drawn_from(row);
  }

  double uniform(std::int64_t row, std::int64_t position, Use use) const override {
    const auto index = static_cast<std::size_t>(row);
    const std::uint64_t seed = session_.state.sampling.values[index].seed.value();
    const PhiloxWords words = philox4x32(
        philox_counter(static_cast<std::uint64_t>(past_[index] + 1 + position), static_cast<std::uint64_t>(use)),
        fork_seed(seed, kSeedOfRounds));
    return unit_double(words.word[0], words.word[1]);
  }

  bool is_plain() const override {
    const BatchState& state = session_.state;
    return state.masks == nullptr && state.history == nullptr &&
           std::ranges::none_of(state.sampling.values, &SamplingParameters::sample) &&
           std::ranges::none_of(state.details.values, &DetailsRequest::any);
  }

  std::vector<std::vector<std::int64_t>> choose_all() override {
    if (!is_plain()) {
      throw std::logic_error(
          "rows that draw, or have masks, penalties or details, choose one position after the other");
    }
    const at::Tensor best =
        in_stage(Stage::choice, [&] { return highest_logits(logits_, *session_.workspace).to(at::kCPU); });
    const auto* token = best.const_data_ptr<std::int64_t>();
    std::vector<std::vector<std::int64_t>> tokens;
    for (const std::vector<std::int64_t>& row : guesses_) {
      tokens.emplace_back(token, token + 1 + std::ssize(row));
      token += 1 + std::ssize(row);
    }
    return tokens;
  }

  /// Returns what rows said, where they said `said`; ends the round.
  std::vector<RowRun> runs(std::vector<std::vector<std::int64_t>> said) {
    for (std::size_t row = 0; row < runs_.size(); ++row) {
      RowRun& run = runs_[row];
      run.token_ids = std::move(said[row]);
      run.proposed = std::ssize(guesses_[row]);
      run.accepted = std::ssize(run.token_ids) - (run.exhausted ? 0 : 1);
      last_lines_.push_back(begins_[row] + run.accepted);
    }
    return std::move(runs_);
  }

  const at::Tensor& logits() const { return logits_; }
  /// Returns the lines [B, ..] of `lines` [S, ..] that each row chose its last token from; after runs().
  at::Tensor last_of(const at::Tensor& lines) const {
    return lines.index_select(0, at::tensor(last_lines_, at::kLong).to(lines.device()));
  }

 private:
  /// Does what choose() does; without a chooser, by the session's own choice.
  std::vector<std::int64_t> choose_by(const Chooser& chooser, std::int64_t position,
                                      const std::vector<std::int64_t>& rows) {
    std::vector<std::int64_t> lines;
    std::vector<std::int64_t> positions;  // That the tokens will be fed at.
    for (const std::int64_t index : rows) {
      const auto row = static_cast<std::size_t>(index);
      lines.push_back(begins_[row] + position);
      positions.push_back(past_[row] + 1 + position);
    }
    note_guesses(position, rows);
    const at::Tensor of_lines = logits_.index_select(0, at::tensor(lines, at::kLong).to(logits_.device()));
    const bool all = rows.size() == guesses_.size();
    StepResult said =
        session_.choose_from(of_lines, positions, all ? nullptr : &rows, chooser).step.read(session_.text.get());
    for (std::size_t index = 0; index < rows.size(); ++index) {
      RowRun& run = runs_[static_cast<std::size_t>(rows[index])];
      if (!said.exhausted.empty() && said.exhausted[index]) {
        run.exhausted = true;
        said.token_ids[index] = kNoToken;
      } else if (!said.details.empty()) {
        run.details.push_back(std::move(said.details[index]));
      }
    }
    return std::move(said.token_ids);
  }

  /// Lets penalties know the guesses that stand before `position`: a row that comes so far has said them.
  void note_guesses(std::int64_t position, const std::vector<std::int64_t>& rows) {
    if (position == 0 || session_.state.history == nullptr) {
      return;
    }
    std::vector<std::vector<std::int64_t>> tokens(guesses_.size());
    std::vector<std::int64_t> positions = past_;
    for (const std::int64_t index : rows) {
      const auto row = static_cast<std::size_t>(index);
      tokens[row] = {guesses_[row][static_cast<std::size_t>(position - 1)]};
      positions[row] += position;
    }
    session_.state.history->add(tokens, positions);
  }

  Session::Impl& session_;
  const Proposer* proposer_;  ///< Made the guesses; null: somebody else did.
  std::vector<std::vector<std::int64_t>> guesses_;
  at::Tensor logits_;
  std::vector<std::int64_t> past_;
  std::vector<std::int64_t> begins_;      ///< The line of each row's first logits.
  std::vector<std::int64_t> last_lines_;  ///< The line that each row chose its last token from, after runs().
  std::vector<RowRun> runs_;
};

Verified Session::Impl::pass(const at::Tensor& ids, const StepRows& rows) {
  workspace->begin_verification(batch_size());
  Verified verified = in_stage(Stage::verify, [&] {
    return runner->verify(
        {.ids = ids, .rows = rows, .cache = *state.cache, .workspace = *workspace, .encoded = state.encoded.get()});
  });
  in_stage(Stage::host, [&] { state.cache->advance(rows); });
  return verified;
}

void Session::pass(std::span<const std::vector<std::int64_t>> tokens) {
  const InCall call(impl_->engine);
  std::vector<std::int64_t> added;
  for (const std::vector<std::int64_t>& row : tokens) {
    added.push_back(std::ssize(row));
  }
  const StepRows rows = impl_->rows(std::move(added), PrefillLayout::packed);
  impl_->state.cache->check_room(rows);
  impl_->pass(padded_ids(tokens, rows.tokens(), impl_->model().config.vocabulary_size).to(rows.device()), rows);
}

std::vector<RowRun> Session::Impl::verify(std::span<const std::vector<std::int64_t>> guesses,
                                          const Proposer* proposer) {
  std::vector<std::vector<std::int64_t>> tokens;
  std::vector<std::int64_t> added;
  const std::vector<std::int64_t> next = next_tokens();
  for (std::size_t row = 0; row < next.size(); ++row) {
    tokens.push_back({next[row]});
    std::ranges::copy(guesses[row], std::back_inserter(tokens.back()));
    added.push_back(std::ssize(tokens.back()));
  }
  // Rows have as many guesses as their proposer found, and none where they wait for others: padding them would cost a
  // round as much as its longest row in all of them.
  const StepRows step_rows = rows(std::move(added), PrefillLayout::packed);
  const at::Tensor ids = padded_ids(tokens, step_rows.tokens(), model().config.vocabulary_size).to(step_rows.device());
  state.cache->check_room(step_rows);
  std::vector<std::int64_t> past = state.cache->lengths();
  if (state.history) {
    state.history->add(state.next_ids.value, past);
  }
  if (state.other_ranks) {
    state.other_ranks->pass(tokens);
  }
  const Verified verified = pass(ids, step_rows);
  PassRound round(*this, guesses, proposer, verified.logits, past);
  std::vector<RowRun> runs = in_stage(Stage::accept, [&] { return round.runs(engine.acceptance->accept(round)); });
  state.last_logits.value = round.last_of(round.logits());
  if (engine.proposer.sees_states) {
    state.last_hidden.value = round.last_of(verified.hidden);
  }
  std::vector<std::int64_t> chosen;
  for (std::size_t row = 0; row < runs.size(); ++row) {
    // A row whose rules left no token is not fed again: any id will do.
    chosen.push_back(runs[row].exhausted ? 0 : runs[row].token_ids.back());
    const std::int64_t held = past[row] + 1 + runs[row].accepted;
    state.cache->truncate(static_cast<std::int64_t>(row), held);
    if (state.other_ranks && runs[row].accepted < std::ssize(guesses[row])) {
      state.other_ranks->truncate(static_cast<std::int64_t>(row), held);
    }
    if (state.proposer) {
      state.proposer->add(static_cast<std::int64_t>(row),
                          std::span(runs[row].token_ids).first(static_cast<std::size_t>(runs[row].accepted)));
    }
  }
  state.next_ids.value = at::tensor(chosen, at::kLong).unsqueeze(1).to(step_rows.device());
  count(runs);
  return runs;
}

std::vector<RowRun> Session::Impl::step_alone() {
  decode_forward();
  choose();
  StepResult step = read();
  std::vector<RowRun> runs(step.token_ids.size());
  for (std::size_t row = 0; row < runs.size(); ++row) {
    runs[row].exhausted = !step.exhausted.empty() && step.exhausted[row];
    if (runs[row].exhausted) {
      continue;
    }
    runs[row].token_ids.push_back(step.token_ids[row]);
    if (!step.details.empty()) {
      runs[row].details.push_back(std::move(step.details[row]));
    }
  }
  count(runs);
  return runs;
}

std::vector<std::vector<std::int64_t>> Session::Impl::propose(std::span<const std::int64_t> budgets) {
  const Range range(Stage::draft);
  const Unheard draft;  // What a draft does is not what the model does.
  if (engine.proposer.sees_states) {
    PlainWorkspace own;  // The session's may hold other states.
    const at::Tensor& hidden = state.last_hidden.value;
    state.proposer->see(hidden.defined() ? engine.transformer->last_norm(hidden, own) : hidden);
  }
  return state.proposer->propose(budgets);
}

void Session::Impl::check_round(const char* what, const char* values, std::size_t rows) const {
  refuse_unread(what);
  refuse_without_cache(what);
  refuse_without_next(what);
  if (static_cast<std::int64_t>(rows) != batch_size()) {
    throw std::invalid_argument(fmt::format("the session has {} rows, but {} of {} came", batch_size(), values, rows));
  }
}

std::vector<RowRun> Session::verify(std::span<const std::vector<std::int64_t>> guesses) {
  const InCall call(impl_->engine);
  impl_->check_round("verify()", "guesses", guesses.size());
  const std::int64_t vocabulary = impl_->model().config.vocabulary_size;
  for (std::size_t row = 0; row < guesses.size(); ++row) {
    for (const std::int64_t id : guesses[row]) {
      if (id < 0 || id >= vocabulary) {
        throw std::invalid_argument(fmt::format(
            "a guess of row {} is the token id {}, but the vocabulary has the ids 0 to {}", row, id, vocabulary - 1));
      }
    }
  }
  impl_->tell_next();
  return impl_->verify(guesses, nullptr);
}

bool Session::listens() const { return impl_->state.proposer != nullptr && impl_->state.proposer->listens(); }

void Session::foretell(std::span<const std::vector<std::int64_t>> completions) {
  if (std::ssize(completions) != impl_->batch_size()) {
    throw std::invalid_argument(
        fmt::format("the session has {} rows, but completions of {} came", impl_->batch_size(), completions.size()));
  }
  if (impl_->state.proposer) {
    impl_->state.proposer->foretell(completions);
  }
}

std::vector<RowRun> Session::speculate(std::span<const std::int64_t> budgets) {
  const InCall call(impl_->engine);
  if (impl_->state.proposer == nullptr) {
    throw std::logic_error("speculate() needs guesses, and the plan has no proposer: give them to verify()");
  }
  impl_->check_round("speculate()", "budgets", budgets.size());
  impl_->tell_next();
  BatchState& state = impl_->state;
  std::vector<std::int64_t> wanted(budgets.begin(), budgets.end());
  if (state.draft_length) {
    wanted = state.draft_length->wanted(budgets);
  }
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<std::vector<std::int64_t>> guesses = impl_->propose(wanted);
  const auto proposed = std::chrono::steady_clock::now();
  const bool none = std::ranges::all_of(guesses, [](const auto& row) { return row.empty(); });
  // A decode step would not show what its tokens are chosen from.
  std::vector<RowRun> runs =
      none && !impl_->engine.proposer.sees_states ? impl_->step_alone() : impl_->verify(guesses, state.proposer.get());
  if (state.draft_length) {
    std::vector<DraftLength::Outcome> outcomes;
    for (const RowRun& run : runs) {
      outcomes.push_back({.proposed = run.proposed, .accepted = run.accepted});
    }
    const auto nanoseconds = [](auto time) { return std::chrono::nanoseconds(time).count(); };
    state.draft_length->note(outcomes, nanoseconds(proposed - begin),
                             nanoseconds(std::chrono::steady_clock::now() - proposed));
  }
  return runs;
}

}  // namespace decodelab
