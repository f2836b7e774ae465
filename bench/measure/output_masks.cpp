// Lowers the logits of tokens that rules forbid.
#include "bench/measure/output_masks.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace decodelab {

OutputMasks::OutputMasks(const TokenRules& rules, const std::shared_ptr<const MaskVocabulary>& vocabulary,
                         std::int64_t rows, std::int64_t vocabulary_size)
    : bits_(vocabulary_size) {
  std::shared_ptr<TokenMask> mask;
  if (!rules.regex.empty()) {
    mask = make_scan_masks({.pattern = rules.regex, .vocabulary = vocabulary});
  }
  rows_.assign(static_cast<std::size_t>(rows), RowRules(rules, mask, vocabulary));
}

void OutputMasks::lower_forbidden(std::span<float> logits) {
  const auto width = static_cast<std::size_t>(bits_.width());
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    rows_[row].find_allowed(bits_);
    const std::span<float> of_row = logits.subspan(row * width, width);
    float least = std::numeric_limits<float>::max();
    float largest = 0;
    for (std::size_t id = 0; id < width; ++id) {
      largest = std::max(largest, std::abs(of_row[id]));
      least = bits_.allows(static_cast<std::int64_t>(id)) ? std::min(least, of_row[id]) : least;
    }
    for (std::size_t id = 0; id < width; ++id) {
      if (!bits_.allows(static_cast<std::int64_t>(id))) {
        of_row[id] = least - largest;
      }
    }
  }
}

void OutputMasks::take(std::span<const std::int64_t> token_ids) {
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    rows_[row].take(token_ids[row], position_);
  }
  ++position_;
}

}  // namespace decodelab
