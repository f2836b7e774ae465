// Guesses of the tokens that come next, which one pass of the model then checks: the interface of a slot.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/layers/row_part.h"

namespace at {
class Tensor;
}

namespace decodelab {

/// Guesses the next tokens of each row of a session, for speculative decoding (Leviathan et al. 2023,
/// arXiv:2211.17192). A guess that is wrong costs time and never changes what is said.
class Proposer : public RowPart {
 public:
  /// Takes note of tokens that a row is fed, in their order.
  virtual void add(std::int64_t row, std::span<const std::int64_t> tokens) = 0;
  /// Returns at most budgets[row] >= 0 guesses of each row, none where it has none: what follows the tokens so far.
  virtual std::vector<std::vector<std::int64_t>> propose(std::span<const std::int64_t> budgets) = 0;
  /// Shows the states [B, d] after the last norm that the rows' next tokens were chosen from, before it is asked for
  /// guesses; undefined where they are not known. Only where ProposerRule::sees_states says so.
  virtual void see(const at::Tensor& states) { static_cast<void>(states); }
  /// Returns the probabilities that the row's last guesses were drawn from, [guesses, V] fp32 on the host; null where
  /// they were not drawn.
  virtual const at::Tensor* drawn_from(std::int64_t row) const {
    static_cast<void>(row);
    return nullptr;
  }
  /// Returns the bytes of keys and values that it holds.
  virtual std::int64_t bytes() const { return 0; }
  /// Returns whether foretell() has any effect.
  virtual bool listens() const { return false; }
  /// Tells what each row will say behind the tokens so far. For measurements at a given rate of right guesses; whoever
  /// looks for its guesses itself does not listen.
  virtual void foretell(std::span<const std::vector<std::int64_t>> completions) { static_cast<void>(completions); }
};

}  // namespace decodelab
