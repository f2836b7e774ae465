// How the next token of each row is chosen from its logits: the interface of a slot, and its reference.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace at {
class Tensor;
}

namespace decodelab {

struct ChosenTokens;

/// Chooses one token a row. Only greedy choice so far; ties go to the lowest id.
class TokenChoice {
 public:
  virtual ~TokenChoice() = default;

  /// `logits` is [B, V], the last real position of each row.
  virtual ChosenTokens choose(const at::Tensor& logits) const = 0;
};

/// The reference: one row at a time, a reduction and a read-back each.
std::unique_ptr<TokenChoice> make_row_by_row_choice();

}  // namespace decodelab
