// Rules on tokens as the comparison of outputs sees them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/masks/token_rules.h"

namespace decodelab {

/// Brings logits of rows with rules to a form that can be compared: what the rules forbid is lower than all that they
/// allow, so that the largest logit is what a right arm chooses. Masks are found by the reference's way, whatever the
/// arm's, so that an arm whose masks are wrong chooses another token.
class OutputMasks final {
 public:
  /// All rows have the same rules.
  OutputMasks(const TokenRules& rules, const std::shared_ptr<const MaskVocabulary>& vocabulary, std::int64_t rows,
              std::int64_t vocabulary_size);

  /// Changes logits [B * V], by rows: those of forbidden tokens become the least allowed one less the row's largest
  /// absolute value.
  void lower_forbidden(std::span<float> logits);
  /// Goes on behind these tokens, one a row.
  void take(std::span<const std::int64_t> token_ids);

 private:
  std::vector<RowRules> rows_;
  MaskBits bits_;
  std::int64_t position_ = 0;
};

}  // namespace decodelab
