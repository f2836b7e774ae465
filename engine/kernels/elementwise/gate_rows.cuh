// Host side of the kernel of a gated MLP's activation and multiplication.
#pragma once

#include <cstdint>

#include "engine/kernels/activation.h"
#include "engine/kernels/device_kernels.h"

struct CUstream_st;

namespace decodelab {

/// Describes rows of a gate and what it multiplies, in device memory, contiguous: out = activation(gate) * up, computed
/// in fp32 and rounded once.
struct DeviceGate {
  DeviceElement element;
  std::int64_t rows;
  std::int64_t width;  ///< I
  Activation activation;
  const void* up;  ///< [rows, 2 I]: the gate, then what it multiplies.
  void* out;       ///< [rows, I]
};

/// Launches the kernel. Asynchronous on `cuda_stream`; the caller checks for launch errors.
void launch_gate_rows(const DeviceGate& gate, CUstream_st* cuda_stream);

}  // namespace decodelab
