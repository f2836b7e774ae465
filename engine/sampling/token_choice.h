// How the next token of each row is chosen from its logits: the interface of a slot, and its reference.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/sampling/rng.h"
#include "engine/sampling/sampling_parameters.h"
#include "engine/sampling/sampling_slots.h"

namespace at {
class Tensor;
}

namespace decodelab {

struct ChosenTokens;
class Workspace;
class TokenHistory;

/// What the choice of one session's tokens is made for.
struct ChoiceOptions {
  std::vector<SamplingParameters> rows;  ///< One a row, as complete_sampling() gives them; empty: all greedy.
  std::string device;
  RngFactory make_rng;  ///< Called only where a row is sampled.

  bool samples() const;
  bool penalizes() const;
  /// Nothing but the highest logit counts in any row.
  bool plain_greedy() const { return !samples() && !penalizes(); }
};

/// The rows of one session as every choice needs them: what each asks, and the generator of those that are sampled.
class ChoiceRows {
 public:
  explicit ChoiceRows(const ChoiceOptions& options);

  /// One a row; empty: all greedy.
  const std::vector<SamplingParameters>& parameters() const { return parameters_; }
  bool penalizes() const;
  /// Indices of the sampled rows, in order.
  const std::vector<std::int64_t>& sampled() const { return sampled_; }
  /// Draws for the sampled rows, in their order; null where there is none.
  Rng* rng() const { return rng_.get(); }

  /// As TokenChoice::select() and TokenChoice::append().
  void select(const std::vector<std::int64_t>& rows);
  void append(ChoiceRows&& other);

 private:
  void find_sampled();

  std::vector<SamplingParameters> parameters_;
  std::vector<std::int64_t> sampled_;
  std::unique_ptr<Rng> rng_;
};

/// Chooses one token a row, for one session: in greedy rows the highest logit, ties to the lowest id; in sampled rows
/// at random. B rows, V vocabulary. Greedy rows consume no random numbers, and a plain greedy session pays for no
/// sampling.
class TokenChoice {
 public:
  virtual ~TokenChoice() = default;

  /// `logits` is [B, V], the last real position of each row, and stays as it is; `history` is null where no row
  /// penalizes.
  virtual ChosenTokens choose(const at::Tensor& logits, const TokenHistory* history, Workspace& workspace) = 0;
  /// Goes on with these rows, in this order; each keeps its parameters and the state of its random numbers.
  virtual void select(const std::vector<std::int64_t>& rows) = 0;
  /// Puts the rows of `other` under its own. Both were made by one factory; `other` is of no use afterwards.
  virtual void append(TokenChoice&& other) = 0;
};

/// The reference: one row at a time, its warpers, a reduction and a read-back each.
std::unique_ptr<TokenChoice> make_row_by_row_choice(const ChoiceOptions& options);

}  // namespace decodelab
