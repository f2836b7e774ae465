// Scale, mask, upcast, softmax and downcast in one pass over each row of scores.
#pragma once

#include <cstdint>

#include "engine/kernels/cpu_isa.h"

namespace decodelab {

/// Describes scores [B, G, T, R, L], contiguous, fp32, fp16 or bf16. Query t of row b sees its first `past[b] + t + 1`
/// keys.
struct MaskedSoftmax {
  ElementType dtype;
  std::int64_t kv_heads;      ///< G
  std::int64_t tokens;        ///< T
  std::int64_t shared_heads;  ///< R
  std::int64_t keys;          ///< L
  const std::int64_t* past;   ///< B
  float unscale;              ///< The upcast scores are multiplied by it.
  const void* scores;
  void* weights;  ///< May be the scores themselves.
};

/// Computes the weights of rows [first, last) of the B * G * T * R. Keys that a query does not see get a weight of
/// exactly 0.
void softmax_rows(const MaskedSoftmax& softmax, std::int64_t first, std::int64_t last, CpuIsa isa);

}  // namespace decodelab
