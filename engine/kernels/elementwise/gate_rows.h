// The activation of a gated MLP and its multiplication, in one pass.
#pragma once

#include <cstdint>

#include "engine/kernels/activation.h"
#include "engine/kernels/cpu_isa.h"

namespace decodelab {

/// Describes rows of a gate and what it multiplies: out = activation(gate) * up, computed in fp32. All are contiguous,
/// fp32, fp16 or bf16.
struct GatedRows {
  ElementType dtype;
  std::int64_t width;  ///< I
  Activation activation;
  const void* up;  ///< [rows, 2 I]: the gate, then what it multiplies.
  void* out;       ///< [rows, I]
};

/// Computes rows [first, last).
void gate_rows(const GatedRows& rows, std::int64_t first, std::int64_t last, CpuIsa isa);

}  // namespace decodelab
