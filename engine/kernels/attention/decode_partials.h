// What the pieces of decode attention leave for merge_splits().
#pragma once

#include "base/round_up.h"
#include "engine/kernels/attention/decode_attention.h"
#include "engine/kernels/simd.h"

namespace decodelab {

/// Rounds a number of heads or of elements up to whole registers.
constexpr std::int64_t filled(std::int64_t count) { return rounded_up(count, simd::kLanes); }

/// Returns the first key that the query of a row sees.
[[gnu::always_inline]] inline std::int64_t first_key(const DecodeAttention& a, std::int64_t row) {
  const std::int64_t all = a.held[row] + 1;
  return a.window > 0 && a.window < all ? all - a.window : 0;
}

/// Where the keys and values of a piece begin.
template <typename Element>
struct PieceTokens {
  const Element* keys;
  const Element* values;
  std::int64_t stride;  ///< Elements from token to token.
};
/// Returns where the tokens from `begin` on, at which a piece begins, stand for one row and key head.
template <typename Element>
[[gnu::always_inline]] inline PieceTokens<Element> piece_tokens(const DecodeAttention& a, std::int64_t row,
                                                                std::int64_t kv_head, std::int64_t begin) {
  const std::int64_t head = kv_head * a.head_dim;
  const std::int64_t of_keys = a.rows_of_queries != nullptr ? a.rows_of_queries[row] : row / a.queries_of_keys;
  if (a.pages != nullptr) {
    const std::int64_t width = a.kv_heads * a.head_dim;
    const auto* const page = static_cast<const Element*>(a.pages[of_keys * a.pages_of_a_row + begin / kSplitKeys]);
    return {page + head, page + kSplitKeys * width + head, width};
  }
  const std::int64_t offset = of_keys * a.row_stride + begin * a.token_stride + head;
  return {static_cast<const Element*>(a.keys) + offset, static_cast<const Element*>(a.values) + offset, a.token_stride};
}

/// Points to the result of one group of sixteen heads in one split: the largest score, the sum of weights, and the
/// weighted values [16][filled k].
struct Partial {
  float* most;
  float* total;
  float* values;
};
[[gnu::always_inline]] inline std::int64_t groups(const DecodeAttention& a) {
  return filled(a.shared_heads) / simd::kLanes;
}
[[gnu::always_inline]] inline std::int64_t floats_of_partial(const DecodeAttention& a) {
  return simd::kLanes * (2 + filled(a.head_dim));
}
[[gnu::always_inline]] inline Partial partial_of(const DecodeAttention& a, std::int64_t item, std::int64_t group) {
  float* begin = a.partials + (item * groups(a) + group) * floats_of_partial(a);
  return {begin, begin + simd::kLanes, begin + 2 * simd::kLanes};
}

/// The most query heads of a key that stand better beside each other than in the lanes of a register.
inline constexpr std::int64_t kFewHeads = 4;
/// Does what attend_splits() does, for at most kFewHeads query heads of each key.
void attend_splits_of_few_heads(const DecodeAttention& attention, std::int64_t first, std::int64_t last, CpuIsa isa);

/// Returns whether attend_splits_on_tiles() supports these shapes: bf16, and heads of whole tiles.
bool fits_tiles(const DecodeAttention& attention);
/// Does what attend_splits() does, on a processor with tiles.
void attend_splits_on_tiles(const DecodeAttention& attention, std::int64_t first, std::int64_t last);

}  // namespace decodelab
