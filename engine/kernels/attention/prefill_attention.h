// Attention of prompts over their own keys: in bf16 the scores of 32 queries at a time, on tiles (AMX) or by dot
// products (AVX-512); in any dtype sixteen queries at a time.
#pragma once

#include <cstdint>

#include "engine/kernels/cpu_isa.h"

namespace decodelab {

/// Describes one prefill of one layer. B rows of T queries, G key heads, R query heads for each, k elements per head.
/// Row b has past[b] + added[b] keys; its query t sees those of the keys 0 .. past[b] + t that the row has.
struct PrefillAttention {
  ElementType dtype;  ///< Of queries, keys, values and results.
  std::int64_t batch_size;
  std::int64_t tokens;        ///< T
  std::int64_t kv_heads;      ///< G
  std::int64_t shared_heads;  ///< R
  std::int64_t head_dim;      ///< k; in lanes at most kMostHeadDim
  float scale;
  const void* query;  ///< [B, T, G * R * k], with these strides between rows and tokens, in elements:
  std::int64_t query_row_stride;
  std::int64_t query_token_stride;
  const void* keys;    ///< [B, L, G * k], with these strides between rows and tokens, in elements:
  const void* values;  ///< likewise
  std::int64_t row_stride;
  std::int64_t token_stride;
  const std::int64_t* past;   ///< [B]
  const std::int64_t* added;  ///< [B]; queries of a row that adds none give finite numbers
  std::int64_t most_keys;     ///< The most keys that a row has.
  void* packed;               ///< packed_key_bytes() bytes, which start at a multiple of 64; not used in lanes
  void* out;                  ///< [B, T, G * R * k], contiguous
  std::int64_t window = 0;    ///< A query sees so many keys, its own the last; 0: all that precede it.
};

/// Returns whether this processor can run pack_keys() and attend_queries(), which take bf16.
bool has_prefill_attention();

/// Return the bytes of packed keys and values, and the bytes that a thread needs besides them.
std::int64_t packed_key_bytes(const PrefillAttention& attention);
std::int64_t score_bytes(const PrefillAttention& attention);

/// Return the number of pieces of pack_keys(), which may run in parallel, and of attend_queries(), which may run in
/// parallel once all pieces of pack_keys() are done.
std::int64_t pack_items(const PrefillAttention& attention);
std::int64_t query_items(const PrefillAttention& attention);

/// Packs pieces [first, last). Each piece is 32 keys and values of one row and key head, with zeros past the keys of
/// the row.
void pack_keys(const PrefillAttention& attention, std::int64_t first, std::int64_t last);
/// Computes pieces [first, last). Each piece is 32 queries of one row and key head, with the heads of a token next to
/// each other, so that a key is loaded once for all heads that share it and keys that no query sees are not multiplied.
/// Scores and softmax are fp32, weights bf16, and values are summed in fp32 and rounded once.
void attend_queries(const PrefillAttention& attention, std::int64_t first, std::int64_t last);

/// Returns the number of pieces of attend_in_lanes(), which may run in parallel.
std::int64_t lane_items(const PrefillAttention& attention);
/// Computes pieces [first, last), on any processor and in any dtype, with nothing packed before. Each piece is sixteen
/// queries of one row and key head, likewise. Scores, weights and sums are fp32, and results are rounded once; keys are
/// taken in tiles, as in attend_splits() of decode attention.
void attend_in_lanes(const PrefillAttention& attention, std::int64_t first, std::int64_t last, CpuIsa isa);

}  // namespace decodelab
