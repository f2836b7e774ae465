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

  /// Some of the rows, by what each of them asks.
  struct Part {
    std::vector<SamplingParameters> parameters;  ///< Of each of them; empty: all are greedy.
    std::vector<std::int64_t> sampled;           ///< Which of them are sampled.
    std::vector<std::int64_t> draws;             ///< The rows of rng() that those are.
  };
  Part part(const std::vector<std::int64_t>& rows) const;

  /// Do what TokenChoice::select() and TokenChoice::append() do.
  void select(const std::vector<std::int64_t>& rows);
  void append(ChoiceRows&& other);

 private:
  void find_sampled();

  std::vector<SamplingParameters> parameters_;
  std::vector<std::int64_t> sampled_;
  std::unique_ptr<Rng> rng_;
};

/// What N rows of a session choose from.
struct ChoiceTask {
  const at::Tensor& logits;               ///< [N, V], one line for each row; not modified.
  const TokenHistory* history = nullptr;  ///< Of all rows of the session; null where none penalizes.
  Workspace& workspace;
  /// Which rows choose, in rising order; null: all. No other row draws a random number.
  const std::vector<std::int64_t>* rows = nullptr;
};

/// Chooses one token per row, for one session: in greedy rows the token of the highest logit, ties to the lowest id; in
/// sampled rows a random one. B rows, V vocabulary. Greedy rows consume no random numbers, and a plain greedy session
/// does no work for sampling.
class TokenChoice : public RowPart {
 public:
  virtual ChosenTokens choose(const ChoiceTask& task) = 0;
  /// Keeps these rows; each keeps its parameters and the state of its random numbers.
  void select(const std::vector<std::int64_t>& rows) override = 0;
  void append(RowPart& other) override = 0;
  /// Does nothing: what was drawn stays drawn.
  void truncate(std::int64_t, std::int64_t) override {}
};

/// Returns what `rows` are chosen from, [N, V] fp32: the logits, a line for each of them, after penalties and, in
/// sampled rows, after warpers. `asked` and `history` are of all rows of the session.
at::Tensor processed_logits(const at::Tensor& logits, const TokenHistory* history,
                            std::span<const SamplingParameters> asked, const std::vector<std::int64_t>& rows);

/// The reference: handles one row at a time, with its warpers, one reduction and one read-back each.
std::unique_ptr<TokenChoice> make_row_by_row_choice(const ChoiceOptions& options);

}  // namespace decodelab
