// Host side of the kernel that norms and turns the queries and keys of a step, where they lie or on their way to the
// cache.
#pragma once

#include <cstdint>

#include "engine/kernels/device_kernels.h"
#include "engine/kernels/elementwise/cache_slots.h"

struct CUstream_st;

namespace decodelab {

/// Describes the heads of all tokens of a step, in device memory. Heads of a token are neighbours, and tokens are
/// `stride` elements apart. Arithmetic is fp32, and numbers are rounded once, when they are stored.
struct DeviceRotary {
  DeviceElement element;
  std::int64_t tokens;
  std::int64_t heads;     ///< Of each token.
  std::int64_t head_dim;  ///< k
  std::int64_t dims;      ///< Elements of a head that turn, from its first on; 0: none.
  void* rows;             ///< Overwritten where there is no cache.
  std::int64_t stride;
  /// Of each token, where `dims` is not 0 or there is a cache; repeated after `position_count` tokens.
  const std::int64_t* positions;
  std::int64_t position_count;
  const void* cosine;   ///< [positions, dims / 2]
  const void* sine;     ///< [positions, dims / 2]
  const void* norm;     ///< [k]: weights of an RMS norm over each head, which comes first; or null.
  float weight_offset;  ///< Added to these weights.
  float epsilon;
  CacheSlots cache{};  ///< Of keys: they are written there, and the values that follow the last head of each token too.
};

/// Launches the kernel. Asynchronous on `cuda_stream`; the caller checks for launch errors.
void launch_rotary_rows(const DeviceRotary& rotary, CUstream_st* cuda_stream);

}  // namespace decodelab
