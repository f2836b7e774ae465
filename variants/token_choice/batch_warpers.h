// The warpers of all sampled rows at once: whole tensors, with a parameter a row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/sampling/sampling_parameters.h"
#include "engine/tensor.h"

namespace decodelab {

/// warp_row() for S rows over a vocabulary of V. Parameters go to the device once; a warper that is neutral in every
/// row is left out, and one that is neutral in a row changes no bit of it.
class BatchWarpers {
 public:
  BatchWarpers(std::span<const SamplingParameters> rows, at::Device device);

  /// `logits` is [S, V] fp32 and is never written to.
  at::Tensor warp(const at::Tensor& logits) const;

 private:
  at::Tensor keep_top_k(const at::Tensor& logits) const;
  at::Tensor keep_top_p(const at::Tensor& logits) const;
  at::Tensor keep_typical_p(const at::Tensor& logits) const;

  // Each [S, 1] on the device, where any row asks for it.
  std::optional<at::Tensor> temperature_;
  std::optional<at::Tensor> top_k_;         ///< int64; a row without has 1.
  std::optional<at::Tensor> top_k_off_;     ///< bool
  std::optional<at::Tensor> dropped_mass_;  ///< 1 - top_p; a row without has -1, which no mass is below.
  std::optional<at::Tensor> typical_p_;     ///< A row without has 2, which no mass reaches.
  std::int64_t largest_k_ = 0;
};

/// penalize_row() for all rows of a batch; made once a session.
class BatchPenalty {
 public:
  BatchPenalty(std::span<const SamplingParameters> rows, at::Device device);

  /// `logits` is [B, V] fp32, `seen` [B, V] bool.
  at::Tensor penalize(const at::Tensor& logits, const at::Tensor& seen) const;

 private:
  at::Tensor penalty_;  ///< [B, 1]
};

}  // namespace decodelab
