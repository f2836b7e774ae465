// What sampling does to one row's logits before a token is drawn: the reference, one row at a time.
#pragma once

#include "engine/sampling/sampling_parameters.h"

namespace at {
class Tensor;
}

namespace decodelab {

/// Returns `logits` [V] fp32 with those of the `seen` tokens ([V] bool) lowered by the row's repetition penalty.
at::Tensor penalize_row(const at::Tensor& logits, const at::Tensor& seen, const SamplingParameters& row);

/// Returns `logits` [V] fp32 after temperature, top-k, top-p and typical-p. Tokens that they drop are -infinity, and
/// one is always kept. Neutral parameters are skipped, and `logits` itself is never written to. Tokens with a
/// probability of 0 may be dropped by any of them.
///
/// The arithmetic is that of the LogitsProcessors of Hugging Face Transformers 5 with min_tokens_to_keep = 1, except
/// that sorts are stable, the entropy behind typical-p is summed in fp64, and its probabilities do not depend on the
/// order that they are sorted into, so that neither threads nor neighbours change a row: of tokens that tie where top-p
/// cuts, the higher ids are kept.
at::Tensor warp_row(const at::Tensor& logits, const SamplingParameters& row);

}  // namespace decodelab
