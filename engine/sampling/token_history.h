// Which tokens each row of a session was fed, for the repetition penalty.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/layers/row_part.h"
#include "engine/tensor.h"

namespace decodelab {

/// Records the tokens that B rows were fed, as one bit per row and token of a vocabulary of V. A session keeps a
/// history only where a row penalizes repetitions.
class TokenHistory final : public RowPart {
 public:
  TokenHistory(std::int64_t batch_size, std::int64_t vocabulary_size, at::Device device);

  /// Adds tokens of each row, maybe none, which it is fed from `positions` on; ids must lie in the vocabulary.
  void add(const std::vector<std::vector<std::int64_t>>& tokens, const std::vector<std::int64_t>& positions);
  /// Adds one token per row: `ids` is [B, 1] int64 on the device, at each row's `positions`.
  void add(const at::Tensor& ids, const std::vector<std::int64_t>& positions);

  void select(const std::vector<std::int64_t>& rows) override;
  void append(RowPart& other) override;
  void truncate(std::int64_t row, std::int64_t length) override;

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
    at::Tensor ids;  ///< [n] int64 on the device.
    std::vector<Held> held;
  };

  void mark(const Step& step);

  at::Tensor seen_;
  std::vector<Step> steps_;  ///< Kept so that truncate() can set the bits anew.
};

}  // namespace decodelab
