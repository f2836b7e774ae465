// Host side of the kernels of decode attention: a block for each row, key head and split of the keys, then a merge.
#pragma once

#include <cstdint>

#include "engine/kernels/device_kernels.h"

struct CUstream_st;

namespace decodelab {

/// Describes one step of one layer, all in device memory. B rows of queries, G key heads, R query heads for each, k
/// elements per head.
struct DeviceDecodeAttention {
  DeviceElement element;
  std::int64_t batch_size;
  std::int64_t kv_heads;      ///< G
  std::int64_t shared_heads;  ///< R
  std::int64_t head_dim;      ///< k
  float scale;
  const void* query;  ///< [B, G * R * k], rows `query_stride` elements apart
  std::int64_t query_stride;
  const void* keys;    ///< [B / queries_of_keys, L, G * k], with these strides between rows and tokens, in elements:
  const void* values;  ///< likewise
  std::int64_t row_stride;
  std::int64_t token_stride;
  const std::int64_t* held;  ///< B keys held before each query, `held_stride` apart; the query sees one more
  std::int64_t held_stride;  ///< 0 where one number serves all rows
  DecodeLaunch launch;       ///< decode_launch() of the rows of keys and the most keys that a query sees, or a
                             ///< verify_launch() of that; with a window, of one query a block
  float* partials;           ///< device_partial_floats() floats
  void* out;                 ///< [B, G * R * k], contiguous
  std::int64_t window = 0;   ///< The query sees so many keys, the last ones, and no others are read; 0: all
  /// So many rows of queries, one behind the other, have one row of keys: the guesses of a row that are verified.
  std::int64_t queries_of_keys = 1;
};

/// Launches both kernels. Asynchronous on `cuda_stream`; the launch depends on shapes only, so that it can be captured.
/// The caller checks for launch errors.
void launch_decode_attention(const DeviceDecodeAttention& attention, CUstream_st* cuda_stream);

}  // namespace decodelab
