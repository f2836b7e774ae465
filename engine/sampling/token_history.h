// Which tokens each row of a session was fed, for the repetition penalty.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/tensor.h"

namespace decodelab {

/// Records the prompts of B rows and the tokens fed after them, as one bit per row and token of a vocabulary of V. A
/// session keeps a history only where a row penalizes repetitions.
class TokenHistory {
 public:
  TokenHistory(std::int64_t batch_size, std::int64_t vocabulary_size, at::Device device);

  /// Adds one prompt per row, from position 0 on; ids must lie in the vocabulary.
  void add(std::span<const std::vector<std::int64_t>> prompts);
  /// Adds one token per row: `ids` is [B, 1] int64 on the device, at each row's `positions`.
  void add(const at::Tensor& ids, const std::vector<std::int64_t>& positions);
  /// Forgets every token at position `length` and after it.
  void truncate(std::int64_t length);
  /// Keeps these rows, in this order.
  void select(const std::vector<std::int64_t>& rows);
  /// Appends the rows of `other`.
  void append(TokenHistory&& other);

  /// Returns [B, V] bool on the device: true where the row holds the token.
  const at::Tensor& seen() const { return seen_; }

 private:
  /// A token of a step, and the row that holds it now.
  struct Held {
    std::int64_t source;  ///< Its index in the step's ids.
    std::int64_t row;
    std::int64_t position;
  };
  struct Step {
    at::Tensor ids;  ///< [n, 1], n being the number of rows in that step.
    std::vector<Held> held;
  };

  void mark_prompts();

  at::Tensor seen_;
  std::vector<std::vector<std::int64_t>> prompts_;  ///< One per row.
  std::vector<Step> steps_;                         ///< Kept so that truncate() can set the bits anew.
};

}  // namespace decodelab
