// Host side of the kernel of residual and norm.
#pragma once

#include <cstdint>

#include "engine/kernels/device_kernels.h"
#include "engine/kernels/norm_kind.h"

struct CUstream_st;

namespace decodelab {

/// Describes rows of d elements in device memory, contiguous. The sum is stored rounded, and the rounded sum is normed,
/// as by an addition followed by a norm; statistics are fp32.
struct DeviceNorm {
  NormKind kind;
  DeviceElement element;
  std::int64_t rows;
  std::int64_t width;    ///< d
  const void* addend;    ///< [rows, d], or null: nothing is added
  const void* residual;  ///< [rows, d]
  const void* weight;    ///< [d]
  const void* bias;      ///< [d], of a layer norm; else null.
  float epsilon;
  void* sum;     ///< [rows, d], or null without an addend
  void* normed;  ///< [rows, d]
};

/// Launches the kernel. Asynchronous on `cuda_stream`; the caller checks for launch errors.
void launch_fused_norm(const DeviceNorm& norm, CUstream_st* cuda_stream);

}  // namespace decodelab
