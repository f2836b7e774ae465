// Details by libtorch's operators, for the ways of text-generation-inference and vLLM to find the most probable tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/sampling/top_tokens.h"
#include "engine/tensor.h"

namespace decodelab {

/// What all of these ways have alike.
struct BatchDetails {
  at::Tensor log_probs;               ///< [N, V] fp32
  std::vector<TokenDetails> details;  ///< All but the most probable tokens.
};

/// Computes log-probabilities and ranks of all tokens with one operator each.
BatchDetails batch_details(const DetailsTask& task);

/// Sets the most probable tokens of one token from the ids [m] int64 of some, all that are no less probable than the
/// last that is wanted among them. `logits` and `log_probs` are those of its row, [V].
void set_top(TokenDetails& details, const at::Tensor& ids, const at::Tensor& logits, const at::Tensor& log_probs,
             const TokenRequest& wanted);

/// Returns the ids of the logits [V] that are at least `bound`, [m] int64.
at::Tensor ids_from(const at::Tensor& logits, const at::Tensor& bound);

}  // namespace decodelab
