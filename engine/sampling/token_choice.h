// How the next token of each row is chosen from its logits: the interface of a slot, and its reference.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/layers/row_part.h"
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

/// Says what a TokenChoice is made for: one session's rows.
struct ChoiceOptions {
  std::vector<SamplingParameters> rows;  ///< One per row, as complete_sampling() returns them; empty: all greedy.
  std::string device;
  RngFactory make_rng;  ///< Called only if a row is sampled.

  bool samples() const;
  bool penalizes() const;
  /// Returns whether the highest logit alone decides in every row.
  bool plain_greedy() const { return !samples() && !penalizes(); }
};

/// Holds the rows of one session, as every implementation of TokenChoice needs them: their parameters, and the
/// generator of the sampled ones.
class ChoiceRows {
 public:
  explicit ChoiceRows(const ChoiceOptions& options);

  /// Returns one set of parameters per row; empty: all rows are greedy.
  const std::vector<SamplingParameters>& parameters() const { return parameters_; }
  bool penalizes() const;
  /// Returns the indices of the sampled rows, in order.
  const std::vector<std::int64_t>& sampled() const { return sampled_; }
  /// Returns the generator of the sampled rows, in their order; null where there are none.
  Rng* rng() const { return rng_.get(); }

  /// Do what TokenChoice::select() and TokenChoice::append() do.
  void select(const std::vector<std::int64_t>& rows);
  void append(ChoiceRows&& other);

 private:
  void find_sampled();

  std::vector<SamplingParameters> parameters_;
  std::vector<std::int64_t> sampled_;
  std::unique_ptr<Rng> rng_;
};

/// Chooses one token per row, for one session: in greedy rows the token of the highest logit, ties to the lowest id; in
/// sampled rows a random one. B rows, V vocabulary. Greedy rows consume no random numbers, and a plain greedy session
/// does no work for sampling.
class TokenChoice : public RowPart {
 public:
  /// `logits` is [B, V], the last real position of each row, and is not modified; `history` is null where no row
  /// penalizes.
  virtual ChosenTokens choose(const at::Tensor& logits, const TokenHistory* history, Workspace& workspace) = 0;
  /// Keeps these rows; each keeps its parameters and the state of its random numbers.
  void select(const std::vector<std::int64_t>& rows) override = 0;
  void append(RowPart& other) override = 0;
  /// Does nothing: what was drawn stays drawn.
  void truncate(std::int64_t, std::int64_t) override {}
};

/// Returns what the rows are chosen from, [B, V] fp32: the logits after penalties and, in sampled rows, after warpers.
at::Tensor processed_logits(const at::Tensor& logits, const TokenHistory* history,
                            std::span<const SamplingParameters> rows);

/// The reference: handles one row at a time, with its warpers, one reduction and one read-back each.
std::unique_ptr<TokenChoice> make_row_by_row_choice(const ChoiceOptions& options);

}  // namespace decodelab
