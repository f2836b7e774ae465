// Feeds a draft what rows said, and lets it go on.
#include "variants/proposer/draft_proposer.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/select_rows.h"
#include "engine/sampling/token_choice.h"
#include "engine/sequences/batch_state.h"
#include "profiles/range.h"

namespace decodelab {
namespace {

/// Parts the random numbers of a draft from those of the model.
constexpr std::uint64_t kSeedOfDrafts = 0x6472616674;

/// Returns how a draft says what a row says: by the same warpers, with random numbers of its own. Only guesses that are
/// checked against what they were drawn from gain by being drawn.
SamplingParameters sampling_of_draft(const SamplingParameters& row, bool draws) {
  if (!draws || !row.sample) {
    return {};
  }
  SamplingParameters draft = row;
  draft.repetition_penalty = 1;
  draft.seed = fork_seed(row.seed.value(), kSeedOfDrafts);
  return draft;
}

std::size_t length_in_common(const std::vector<std::int64_t>& one, const std::vector<std::int64_t>& other) {
  return static_cast<std::size_t>(std::ranges::mismatch(one, other).in1 - one.begin());
}

}  // namespace

DraftProposer::DraftProposer(const ProposerOptions& options, std::int64_t most)
    : engine_(*options.draft),
      most_(most),
      max_tokens_(std::min(options.max_tokens, engine_.model().config().positions)),
      draws_(options.draws),
      rows_(static_cast<std::size_t>(options.rows)) {
  for (std::size_t row = 0; row < options.sampling.size(); ++row) {
    rows_[row].sampling = sampling_of_draft(options.sampling[row], draws_);
  }
}

void DraftProposer::add(std::int64_t row, std::span<const std::int64_t> tokens) {
  std::ranges::copy(tokens, std::back_inserter(rows_[static_cast<std::size_t>(row)].tokens));
}

Session& DraftProposer::session() {
  if (!session_) {
    std::vector<SamplingParameters> sampling;
    std::ranges::transform(rows_, std::back_inserter(sampling), &Row::sampling);
    session_.emplace(engine_, SessionOptions{.batch_size = std::ssize(rows_),
                                             .max_tokens = max_tokens_,
                                             .details = {},
                                             .sampling = std::move(sampling)});
  }
  return *session_;
}

std::int64_t DraftProposer::plan(std::span<const std::int64_t> budgets) {
  std::int64_t most = 0;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    Row& of = rows_[row];
    // The last guess is not fed.
    const std::int64_t room = max_tokens_ - std::ssize(of.tokens) + 1;
    of.guesses = std::max<std::int64_t>(0, std::min({budgets[row], most_, room}));
    of.probabilities = at::Tensor();
    most = std::max(most, of.guesses);
  }
  return most;
}

std::vector<std::vector<std::int64_t>> DraftProposer::missing(bool again) {
  std::vector<std::vector<std::int64_t>> tokens;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    Row& of = rows_[row];
    std::size_t kept = length_in_common(of.held, of.tokens);
    std::size_t end = of.tokens.size();
    if (std::ssize(of.tokens) > max_tokens_) {
      kept = std::min<std::size_t>(kept, 1);  // It sits out, on as little as a row can hold.
      end = 1;
    }
    if (again && kept == end) {
      --kept;
    }
    if (kept < of.held.size()) {
      session().truncate(static_cast<std::int64_t>(row), static_cast<std::int64_t>(kept));
    }
    const auto begin = of.tokens.begin();
    tokens.emplace_back(begin + static_cast<std::ptrdiff_t>(kept), begin + static_cast<std::ptrdiff_t>(end));
    of.held.assign(begin, begin + static_cast<std::ptrdiff_t>(end));
  }
  return tokens;
}

void DraftProposer::catch_up() {
  const std::vector<std::vector<std::int64_t>> tokens = missing(false);
  if (std::ranges::any_of(tokens, [](const auto& row) { return !row.empty(); })) {
    session().extend(tokens);
  }
  session().force_tokens(std::vector<std::int64_t>(rows_.size(), 0));
}

std::vector<std::int64_t> DraftProposer::first_guesses() {
  const std::vector<std::vector<std::int64_t>> tokens = missing(true);
  const bool one_each = std::ranges::all_of(tokens, [](const auto& row) { return row.size() == 1; }) &&
                        std::ranges::all_of(rows_, [](const Row& row) { return row.held.size() > 1; });
  if (!one_each) {
    session().extend(tokens);
    return session().choose().token_ids;
  }
  std::vector<std::int64_t> next;
  std::ranges::transform(tokens, std::back_inserter(next), [](const auto& row) { return row.front(); });
  session().force_tokens(next);
  return session().decode().token_ids;
}

at::Tensor DraftProposer::probabilities_of_step() {
  if (std::ranges::none_of(rows_, [](const Row& row) { return row.sampling.sample; })) {
    return {};
  }
  std::vector<float> logits = session().last_logits();
  const auto rows = std::ssize(rows_);
  std::vector<SamplingParameters> sampling;
  std::ranges::transform(rows_, std::back_inserter(sampling), &Row::sampling);
  std::vector<std::int64_t> all(rows_.size());
  std::iota(all.begin(), all.end(), std::int64_t{0});
  const at::Tensor of_step = at::from_blob(logits.data(), {rows, std::ssize(logits) / rows}, at::kFloat);
  return at::softmax(processed_logits(of_step, nullptr, sampling, all), 1);
}

std::vector<std::vector<std::int64_t>> DraftProposer::propose(std::span<const std::int64_t> budgets) {
  const c10::InferenceMode inference;
  const std::int64_t most = plan(budgets);
  std::vector<std::vector<std::int64_t>> guesses(rows_.size());
  if (most == 0) {
    return guesses;
  }
  std::vector<std::vector<at::Tensor>> drawn(rows_.size());
  std::vector<std::int64_t> chosen = first_guesses();
  for (std::int64_t step = 0;; ++step) {
    const at::Tensor probabilities = probabilities_of_step();
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (step < rows_[row].guesses) {
        guesses[row].push_back(chosen[row]);
        if (rows_[row].sampling.sample) {
          drawn[row].push_back(probabilities[static_cast<std::int64_t>(row)]);
        }
      }
    }
    if (step + 1 == most) {
      break;
    }
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      Row& of = rows_[row];
      if (step + 1 < of.guesses) {
        of.held.push_back(chosen[row]);
      } else {
        // A row that has its guesses is fed one token more, in the place of one that it was fed before.
        session().truncate(static_cast<std::int64_t>(row), std::ssize(of.held) - 1);
        of.held.back() = chosen[row];
      }
    }
    chosen = session().decode().token_ids;
  }
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    if (!drawn[row].empty()) {
      rows_[row].probabilities = at::stack(drawn[row]);
    }
  }
  return guesses;
}

const at::Tensor* DraftProposer::drawn_from(std::int64_t row) const {
  const at::Tensor& probabilities = rows_[static_cast<std::size_t>(row)].probabilities;
  return probabilities.defined() ? &probabilities : nullptr;
}

void DraftProposer::select(const std::vector<std::int64_t>& rows) {
  rows_ = select_rows(rows_, rows);
  std::map<std::int64_t, std::uint64_t> copies;  // Of each row, so far.
  std::vector<std::uint64_t> seeds;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::uint64_t copy = copies[rows[row]]++;
    std::optional<std::uint64_t>& seed = rows_[row].sampling.seed;
    if (seed && copy > 0) {
      seed = fork_seed(*seed, copy);  // Two samples of one prompt are guessed independently.
    }
    seeds.push_back(seed.value_or(0));
  }
  if (session_) {
    const Unheard draft;
    if (copies.size() == rows.size()) {
      session_->filter(rows);
    } else {
      session_->fork(rows, seeds);
    }
  }
}

void DraftProposer::append(RowPart& other) {
  auto& rows = dynamic_cast<DraftProposer&>(other);
  if (session_ || rows.session_) {
    const Unheard draft;
    for (DraftProposer* side : {this, &rows}) {
      side->catch_up();
    }
    session_->concatenate(std::move(*rows.session_));
  }
  max_tokens_ = std::max(max_tokens_, rows.max_tokens_);
  std::ranges::move(rows.rows_, std::back_inserter(rows_));
}

void DraftProposer::truncate(std::int64_t row, std::int64_t length) {
  std::vector<std::int64_t>& tokens = rows_[static_cast<std::size_t>(row)].tokens;
  tokens.resize(std::min(tokens.size(), static_cast<std::size_t>(length)));
}

}  // namespace decodelab
