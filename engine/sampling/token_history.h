// Which tokens each row of a session was fed, for the repetition penalty.
#pragma once

#include "engine/tensor.h"

#include <cstdint>
#include <span>
#include <vector>

namespace decodelab {

/// The prompts of B rows and the tokens fed after them, as one bit a row and token of a vocabulary of V. A session keeps one only where a
/// row penalizes repetitions.
class TokenHistory {
 public:
  TokenHistory(std::int64_t batch_size, std::int64_t vocabulary_size, at::Device device);

  /// One prompt a row, from position 0 on; ids are those of the vocabulary.
  void add(std::span<const std::vector<std::int64_t>> prompts);
  /// One token a row, `ids` [B, 1] int64 on the device, at each row's `positions`.
  void add(const at::Tensor& ids, const std::vector<std::int64_t>& positions);
  /// Forgets every token at position `length` and after it.
  void truncate(std::int64_t length);

  /// [B, V] bool on the device: true where the row holds the token.
  const at::Tensor& seen() const { return seen_; }

 private:
  struct Step {
    at::Tensor ids;  ///< [B, 1]
    std::vector<std::int64_t> positions;
  };

  void mark_prompts();

  at::Tensor seen_;
  std::vector<std::vector<std::int64_t>> prompts_;
  std::vector<Step> steps_;  ///< Kept so that truncate() can begin anew.
};

}  // namespace decodelab
