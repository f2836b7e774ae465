// Norms and turns the queries and keys of a step, one pass over each head, where they lie or on their way to the cache.
#pragma once

#include <cstdint>

#include "engine/kernels/cpu_isa.h"
#include "engine/kernels/elementwise/cache_slots.h"

namespace decodelab {

/// The most elements of a head that the kernel takes.
inline constexpr std::int64_t kMostRotaryHeadDim = 256;

/// Describes the heads of all tokens of a step. Heads of a token are neighbours, and tokens are `stride` elements
/// apart, since queries, keys and values come out of one product. All are fp32, fp16 or bf16; arithmetic is fp32, and
/// numbers are rounded once, when they are stored.
struct RotaryRows {
  ElementType dtype;
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
  float weight_offset;  ///< Added to these weights: 1 where the model keeps them around 0 (Gemma), else 0.
  float epsilon;
  CacheSlots cache{};  ///< Of keys: they are written there, and the values that follow the last head of each token too.
};

/// Computes tokens [first, last).
void turn_rows(const RotaryRows& rows, std::int64_t first, std::int64_t last, CpuIsa isa);

}  // namespace decodelab
