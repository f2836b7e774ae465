// Attention of one new token per row over the cache, which reads each key and value once for all heads that share it.
#pragma once

#include <cstdint>

#include "engine/kernels/cpu_isa.h"

namespace decodelab {

/// Keys per piece of work. The number is fixed, so that a row's result depends on neither the threads nor the other
/// rows.
inline constexpr std::int64_t kSplitKeys = 256;

/// Describes one step of one layer on a CPU. B rows of queries, G key heads, R query heads for each, k elements per
/// head; fp32, fp16 or bf16.
struct DecodeAttention {
  ElementType dtype;
  std::int64_t batch_size;
  std::int64_t kv_heads;      ///< G
  std::int64_t shared_heads;  ///< R
  std::int64_t head_dim;      ///< k, at most kMostHeadDim
  float scale;
  const void* query;  ///< [B, G * R * k], rows `query_stride` elements apart
  std::int64_t query_stride;
  const void* keys;    ///< [B / queries_of_keys, L, G * k], with these strides between rows and tokens, in elements:
  const void* values;  ///< likewise
  std::int64_t row_stride;
  std::int64_t token_stride;
  const std::int64_t* held;  ///< B: keys held before this step; the query sees one more
  std::int64_t splits;       ///< splits_of() of the most keys that a query sees
  float* partials;           ///< partial_floats() floats
  void* out;                 ///< [B, G * R * k], contiguous
  std::int64_t window = 0;   ///< The query sees so many keys, the last ones, and no others are read; 0: all
  /// [B * pages_of_a_row]: pages of kSplitKeys tokens, [2, kSplitKeys, G * k] each, keys first, in the place of keys,
  /// values and their strides; null: none. There is no window then.
  const void* const* pages = nullptr;
  std::int64_t pages_of_a_row = 0;
  /// So many rows of queries, one behind the other, have one row of keys: the guesses of a row that are verified.
  std::int64_t queries_of_keys = 1;
  /// [B]: the row of keys of each query, where rows have different numbers of them; null: see queries_of_keys.
  const std::int64_t* rows_of_queries = nullptr;
};
inline constexpr std::int64_t kMostHeadDim = 256;

std::int64_t splits_of(std::int64_t keys);
std::int64_t partial_floats(const DecodeAttention& attention);
/// Return the number of pieces of attend_splits(), which may run in parallel, and of merge_splits(), which may run in
/// parallel once all pieces of attend_splits() are done.
std::int64_t split_items(const DecodeAttention& attention);
std::int64_t merge_items(const DecodeAttention& attention);

/// Computes pieces [first, last). Each piece computes the scores of up to 256 keys, their softmax and the weighted
/// values, not yet divided (flash-decoding: Dao et al. 2023, https://pytorch.org/blog/flash-decoding/; online softmax:
/// Milakov and Gimelshein 2018, arXiv:1805.02867). Runs on tiles with CpuIsa::amx_bf16, in bf16 and with heads of whole
/// 32 elements; the weights are then rounded to bf16 before they are multiplied by the values, as in prefill.
void attend_splits(const DecodeAttention& attention, std::int64_t first, std::int64_t last, CpuIsa isa);
/// Computes pieces [first, last). Each piece combines the parts of one row and key head and rounds once.
void merge_splits(const DecodeAttention& attention, std::int64_t first, std::int64_t last, CpuIsa isa);

}  // namespace decodelab
