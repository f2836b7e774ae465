// The rules of a batch's rows, and the logits of what they forbid.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/layers/row_part.h"
#include "engine/masks/pattern_masks.h"
#include "engine/masks/token_rules.h"
#include "engine/tensor.h"

namespace decodelab {

/// What the rows of a session may be told next. A session has one only where a row has rules.
class RowMasks final : public RowPart {
 public:
  /// `rules` has one for each row. Rows with one pattern share its masks. Throws std::invalid_argument as check_rules()
  /// and PatternMasks::of() do.
  RowMasks(const std::vector<TokenRules>& rules, PatternMasks& masks, std::int64_t vocabulary_size);
  /// Rows without rules.
  RowMasks(std::int64_t batch_size, std::int64_t vocabulary_size);

  /// Returns `logits` [B, V] with -infinity for what may not come; those of a row that may be told nothing more stay as
  /// they are. `logits` is not modified.
  at::Tensor apply(const at::Tensor& logits);
  /// Returns which rows the last apply() left no token.
  const std::vector<bool>& exhausted() const { return exhausted_; }
  /// Takes note of what each row will be fed at its position.
  void take(std::span<const std::int64_t> token_ids, const std::vector<std::int64_t>& positions);
  /// Forgets all that was taken note of: rows begin anew.
  void begin();

  void select(const std::vector<std::int64_t>& rows) override;
  void append(RowPart& other) override;
  void truncate(std::int64_t row, std::int64_t length) override;

 private:
  std::vector<RowRules> rows_;
  std::vector<bool> exhausted_;
  MaskBits bits_;
};

}  // namespace decodelab
