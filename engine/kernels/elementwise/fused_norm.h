// Residual and norm in one pass over each row.
#pragma once

#include <cstdint>

#include "engine/kernels/cpu_isa.h"
#include "engine/kernels/norm_kind.h"

namespace decodelab {

/// Describes rows of d elements, contiguous, fp32, fp16 or bf16. The sum is stored rounded, and the rounded sum is
/// normed, as by an addition followed by a norm; statistics are fp32.
struct FusedNorm {
  NormKind kind;
  ElementType dtype;
  std::int64_t width;    ///< d
  const void* addend;    ///< [rows, d], or null: nothing is added
  const void* residual;  ///< [rows, d]
  const void* weight;    ///< [d]
  const void* bias;      ///< [d], of a layer norm; else null.
  float epsilon;
  void* sum;     ///< [rows, d], or null without an addend
  void* normed;  ///< [rows, d]
};

/// Computes rows [first, last).
void norm_rows(const FusedNorm& norm, std::int64_t first, std::int64_t last, CpuIsa isa);

}  // namespace decodelab
