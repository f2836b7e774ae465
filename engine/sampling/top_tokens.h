// How details of tokens are computed from logits: the interface of a slot, its reference, and parts of its variants.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/sampling/token_details.h"

namespace at {
class Tensor;
}

namespace decodelab {

/// Tokens whose details are wanted, of any rows and steps: N tokens, V vocabulary.
struct DetailsTask {
  const at::Tensor& logits;                   ///< [N, V], those that each token was chosen from, or could have been.
  const at::Tensor& ids;                      ///< [N, 1] int64, on the same device.
  std::vector<const TokenRequest*> wanted{};  ///< N; of a token that needs none, any() is false.
};

/// Waits for the details of N tokens where a device still computes them, and returns them. Called once.
using PendingDetails = std::function<std::vector<TokenDetails>()>;

/// Returns details that are there already.
PendingDetails ready(std::vector<TokenDetails> details);

/// Computes details. Whatever the implementation, they are those of a stable full sort of the logits as they are, and
/// log-probabilities are in fp32; a token's details do not depend on what stands beside it.
class TopTokens {
 public:
  virtual ~TopTokens() = default;

  /// Starts to compute; what is on a device is read when the result is called.
  virtual PendingDetails start(const DetailsTask& task) const = 0;
};

/// The reference: one token at a time, a full sort, and a read-back for each number (text-generation-inference #604,
/// the first version).
std::unique_ptr<TopTokens> make_row_details();

/// The most tokens that are wanted of any token.
std::int64_t most_top_tokens(const DetailsTask& task);

/// Sets the most probable tokens of `details`. `log_prob_of` returns the log-probability of one of them.
void set_top(TokenDetails& details, const LargestLogits& largest,
             const std::function<float(const RankedLogit&)>& log_prob_of);
/// Does that from logits of a row, in any order: all that are no smaller than the n-th largest are among them.
void set_top(TokenDetails& details, std::vector<RankedLogit> some, const TokenRequest& wanted,
             const std::function<float(const RankedLogit&)>& log_prob_of);

/// Returns the most bytes that details of N tokens hold beside their logits, in closed form.
std::int64_t details_workspace_bytes(const TokenRequest& wanted, std::int64_t tokens, std::int64_t vocabulary_size,
                                     std::int64_t element_bytes);

}  // namespace decodelab
