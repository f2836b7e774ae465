// Attention of prompts over their own keys in bf16, the scores of 32 queries at a time, on tiles (AMX) or by dot
// products (AVX-512).
#pragma once

#include <cstdint>

#include "engine/kernels/cpu_isa.h"

namespace decodelab {

/// One prefill of one layer. B rows of T queries, G key heads, R query heads for each, k elements a head. Query t of
/// row b sees the keys 0 .. past[b] + t that the row has, past[b] + added[b] in all.
struct PrefillAttention {
  std::int64_t batch_size;
  std::int64_t tokens;        ///< T
  std::int64_t kv_heads;      ///< G
  std::int64_t shared_heads;  ///< R
  std::int64_t head_dim;      ///< k
  float scale;
  const void* query;  ///< [B, T, G * R * k] bf16; elements of a row and of a token apart:
  std::int64_t query_row_stride;
  std::int64_t query_token_stride;
  const void* keys;    ///< [B, L, G * k] bf16; elements of a row and of a token apart:
  const void* values;  ///< likewise
  std::int64_t row_stride;
  std::int64_t token_stride;
  const std::int64_t* past;   ///< [B]
  const std::int64_t* added;  ///< [B], at least 1
  std::int64_t most_keys;     ///< The most keys that a row has.
  void* packed;               ///< packed_key_bytes() bytes, which start at a multiple of 64
  void* out;                  ///< [B, T, G * R * k] bf16, contiguous
};

/// Whether this processor can run these kernels.
bool has_prefill_attention();

/// Bytes of keys and values in the order in which they are multiplied; bytes that a thread needs beside them.
std::int64_t packed_key_bytes(const PrefillAttention& attention);
std::int64_t score_bytes(const PrefillAttention& attention);

/// Pieces of pack_keys(), which may run side by side, and of attend_queries(), likewise, after all of the first.
std::int64_t pack_items(const PrefillAttention& attention);
std::int64_t query_items(const PrefillAttention& attention);

/// Each piece: 32 keys and values of one row and key head; zeros where the row has none.
void pack_keys(const PrefillAttention& attention, std::int64_t first, std::int64_t last);
/// Each piece: 32 queries of one row and key head, those of a token side by side, so that a key is loaded once for all
/// heads that share it and what no query sees is not multiplied. Scores and softmax in fp32, weights in bf16, values
/// summed in fp32 and rounded once.
void attend_queries(const PrefillAttention& attention, std::int64_t first, std::int64_t last);

}  // namespace decodelab
