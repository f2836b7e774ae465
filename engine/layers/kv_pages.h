// Where the pages of a cache lie.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/kernels/attention/decode_attention.h"

namespace decodelab {

/// Tokens of a page: the keys of a piece of decode attention, so that a piece reads one page.
inline constexpr std::int64_t kPageTokens = kSplitKeys;

/// The pages of each row of one layer. Each is [2, kPageTokens, G * k] in the model's dtype: keys, then values.
struct KvPages {
  std::int64_t of_a_row = 0;    ///< P: pages of the row that has most.
  std::vector<const void*> at;  ///< [B * P]; null behind the last page of a row.
};

}  // namespace decodelab
