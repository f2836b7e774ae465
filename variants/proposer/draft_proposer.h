// Guesses of a second model, which decodes behind the tokens of each row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "engine/sequences/proposer.h"
#include "engine/sequences/sequence_slots.h"
#include "engine/tensor.h"

namespace decodelab {

/// Lets a smaller model say what comes next, as speculative decoding was first proposed (Leviathan et al. 2023,
/// arXiv:2211.17192). The draft keeps keys and values of its own, for as many rows; it is fed what the rows say when it
/// is asked the next time, and what it guessed wrongly is cut off.
///
/// A row with more tokens than the draft has positions gets no guesses.
class DraftProposer final : public Proposer {
 public:
  /// Guesses at most `most` tokens of a row. `options.draft` is there, and outlives the proposer.
  DraftProposer(const ProposerOptions& options, std::int64_t most);

  void add(std::int64_t row, std::span<const std::int64_t> tokens) override;
  std::vector<std::vector<std::int64_t>> propose(std::span<const std::int64_t> budgets) override;
  const at::Tensor* drawn_from(std::int64_t row) const override;
  std::int64_t bytes() const override { return session_ ? session_->cache_bytes() : 0; }

  void select(const std::vector<std::int64_t>& rows) override;
  void append(RowPart& other) override;
  void truncate(std::int64_t row, std::int64_t length) override;

 private:
  struct Row {
    std::vector<std::int64_t> tokens{};  ///< What the row holds and is fed next.
    std::vector<std::int64_t> held{};    ///< What the draft was fed.
    std::int64_t guesses = 0;            ///< That this round wants of it.
    SamplingParameters sampling{};       ///< Of the draft.
    at::Tensor probabilities{};          ///< That the last guesses were drawn from, [guesses, V]; undefined: none.
  };

  Session& session();
  /// Says how many guesses each row wants; returns the most of them.
  std::int64_t plan(std::span<const std::int64_t> budgets);
  /// Cuts off what the draft holds and rows did not say, and returns what each row lacks, at least one token of each
  /// where `again` is set.
  std::vector<std::vector<std::int64_t>> missing(bool again);
  /// Feeds all tokens, and sets a next one, so that the session may take rows of another.
  void catch_up();
  /// Feeds what is missing, and returns the first guesses.
  std::vector<std::int64_t> first_guesses();
  /// Keeps what the guesses of sampled rows were drawn from, [B, V].
  at::Tensor probabilities_of_step();

  const Engine& engine_;
  std::int64_t most_;
  std::int64_t max_tokens_;  ///< That a row of the draft can hold.
  bool draws_;
  std::vector<Row> rows_;
  std::optional<Session> session_;  ///< Empty until somebody asks for a guess.
};

}  // namespace decodelab
