// The warpers of all sampled rows at once: whole tensors, with one parameter per row.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "engine/sampling/sampling_parameters.h"
#include "engine/tensor.h"

namespace decodelab {

/// Returns `logits` [S, V] fp32 with the tokens that typical-p drops at -infinity; `typical_p` is [S, 1] fp32.
using KeepTypical = std::function<at::Tensor(const at::Tensor& logits, const at::Tensor& typical_p)>;

/// Sorts each row by how far the surprise of its tokens lies from the entropy.
at::Tensor keep_typical_by_sorting(const at::Tensor& logits, const at::Tensor& typical_p);

/// Does what warp_row() does for S rows over a vocabulary of V. Parameters are copied to the device once; a warper that
/// is neutral in every row is skipped, and one that is neutral in a row changes no bit of it.
class BatchWarpers {
 public:
  BatchWarpers(std::span<const SamplingParameters> rows, at::Device device,
               KeepTypical keep_typical = keep_typical_by_sorting);

  /// `logits` is [S, V] fp32 and is never written to.
  at::Tensor warp(const at::Tensor& logits) const;

 private:
  at::Tensor keep_top_k(const at::Tensor& logits) const;
  at::Tensor keep_top_p(const at::Tensor& logits) const;

  // Each is [S, 1] on the device, and empty if no row sets it.
  std::optional<at::Tensor> temperature_;
  std::optional<at::Tensor> top_k_;         ///< int64; 1 in a row without top-k.
  std::optional<at::Tensor> top_k_off_;     ///< bool
  std::optional<at::Tensor> dropped_mass_;  ///< 1 - top_p; -1 in a row without top-p, since no mass is below it.
  std::optional<at::Tensor> typical_p_;     ///< 2 in a row without typical-p, since no mass reaches it.
  std::int64_t largest_k_ = 0;
  KeepTypical keep_typical_;
};

/// Does what penalize_row() does for all rows of a batch; made once per session.
class BatchPenalty {
 public:
  BatchPenalty(std::span<const SamplingParameters> rows, at::Device device);

  /// `logits` is [B, V] fp32, `seen` [B, V] bool.
  at::Tensor penalize(const at::Tensor& logits, const at::Tensor& seen) const;

 private:
  at::Tensor penalty_;  ///< [B, 1]
};

}  // namespace decodelab
