// Which tokens each row of a session was fed, for the repetition penalty.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/tensor.h"

namespace decodelab {

/// The prompts of B rows and the tokens fed after them, as one bit a row and token of a vocabulary of V. A session
/// keeps one only where a row penalizes repetitions.
class TokenHistory {
 public:
  TokenHistory(std::int64_t batch_size, std::int64_t vocabulary_size, at::Device device);

  /// One prompt a row, from position 0 on; ids are those of the vocabulary.
  void add(std::span<const std::vector<std::int64_t>> prompts);
  /// One token a row, `ids` [B, 1] int64 on the device, at each row's `positions`.
  void add(const at::Tensor& ids, const std::vector<std::int64_t>& positions);
  /// Forgets every token at position `length` and after it.
  void truncate(std::int64_t length);
  /// Keeps these rows, in this order.
  void select(const std::vector<std::int64_t>& rows);
  /// Puts the rows of `other` under its own.
  void append(TokenHistory&& other);

  /// [B, V] bool on the device: true where the row holds the token.
  const at::Tensor& seen() const { return seen_; }

 private:
  /// A token of a step, and the row that holds it now.
  struct Held {
    std::int64_t source;  ///< Its index in the step's ids.
    std::int64_t row;
    std::int64_t position;
  };
  struct Step {
    at::Tensor ids;  ///< [n, 1], as many as there were rows then.
    std::vector<Held> held;
  };

  void mark_prompts();

  at::Tensor seen_;
  std::vector<std::vector<std::int64_t>> prompts_;  ///< One a row.
  std::vector<Step> steps_;                         ///< Kept so that truncate() can begin anew.
};

}  // namespace decodelab
