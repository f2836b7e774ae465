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

  /// Returns `logits` [N, V], a line for each of `rows`, with -infinity for what may not come; those of a row that may
  /// be told nothing more stay as they are. `logits` is not modified.
  at::Tensor apply(const at::Tensor& logits, const std::vector<std::int64_t>& rows);
  /// Returns which of its rows the last apply() left no token.
  const std::vector<bool>& exhausted() const { return exhausted_; }
  /// Takes note of what each of `rows` will be fed at its position; both have a value for each of them.
  void take(std::span<const std::int64_t> token_ids, std::span<const std::int64_t> positions,
            const std::vector<std::int64_t>& rows);
  /// Forgets all that was taken note of: rows begin anew.
  void begin();

  void select(const std::vector<std::int64_t>& rows) override;
  void append(RowPart& other) override;
  void truncate(std::int64_t row, std::int64_t length) override;

 private:
  std::vector<RowRules> rows_;
  std::vector<bool> exhausted_;  ///< Of the rows of the last apply().
  MaskBits bits_;
};

}  // namespace decodelab
