// Host side of the kernels that scale, mask, upcast, normalize and downcast scores.
#pragma once

#include <cstdint>

#include "engine/kernels/device_kernels.h"

struct CUstream_st;

namespace decodelab {

/// Describes scores [B, G, T, R, L] in device memory, contiguous. Query t of row b sees its first `held[b] + t + 1`
/// keys.
struct DeviceSoftmax {
  DeviceElement element;
  std::int64_t rows;          ///< B * G * T * R
  std::int64_t kv_heads;      ///< G
  std::int64_t tokens;        ///< T
  std::int64_t shared_heads;  ///< R
  std::int64_t keys;          ///< L
  const std::int64_t* held;   ///< B, in device memory, `held_stride` apart
  std::int64_t held_stride;   ///< 0 where one number serves all rows
  float unscale;              ///< The upcast scores are multiplied by it.
  void* scores;               ///< Weights are written over them.
};

/// Launches one block per row. Asynchronous on `cuda_stream`. The launch does not depend on row lengths known to the
/// host, so that it can be captured. The caller checks for launch errors.
void launch_block_softmax(const DeviceSoftmax& softmax, CUstream_st* cuda_stream);
/// Launches one warp per row; otherwise like launch_block_softmax().
void launch_warp_softmax(const DeviceSoftmax& softmax, CUstream_st* cuda_stream);

}  // namespace decodelab
