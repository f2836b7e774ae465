// What is reported about tokens besides their ids: the requests, the interface of a slot, and its reference.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace at {
class Tensor;
}

namespace decodelab {

class StepRows;

/// Says which details a caller wants; each flag is independent.
struct DetailsRequest {
  bool prefill_log_probs = false;  ///< Log-probability of each prompt token but the first.
  bool token_log_prob = false;     ///< Log-probability of the chosen token, from the unprocessed logits.
  bool rank = false;               ///< 1 + the number of tokens with larger logits than the chosen one.

  bool any() const { return prefill_log_probs || token_log_prob || rank; }
  bool operator==(const DetailsRequest&) const = default;
};

/// Holds the details of one row of one step; what was not computed is empty or 0.
struct TokenDetails {
  std::vector<float> prefill_log_probs;
  float token_log_prob = 0;
  std::int64_t rank = 0;
};

/// Holds the inputs from which the details of one step are computed. B rows, T tokens, V vocabulary.
struct DetailsInput {
  const at::Tensor& last_logits;               ///< [B, V]
  const at::Tensor* all_logits;                ///< [B, T, V], or null where the head ran on the last tokens only
  const at::Tensor& input_ids;                 ///< [B, T] int64, the input of the step
  const std::vector<std::int64_t>& token_ids;  ///< B chosen tokens
  const StepRows& rows;
  bool prefill;  ///< Only a prefill has prefill log-probabilities
};

/// Decides which details of a step are computed.
class TokenDetailsPolicy {
 public:
  virtual ~TokenDetailsPolicy() = default;

  /// Returns what is computed when `requested` is wanted: a superset of it.
  virtual DetailsRequest effective(const DetailsRequest& requested) const = 0;
};

/// The reference: computes everything in every step, and drops what nobody asked for (as the server that the study
/// started from does).
std::unique_ptr<TokenDetailsPolicy> make_details_always();

/// Computes `wanted` for every row, one row at a time. Log-probabilities are those of the unprocessed logits, in fp32.
/// Prefill log-probabilities are left out where `all_logits` is null.
std::vector<TokenDetails> compute_token_details(const DetailsInput& input, const DetailsRequest& wanted);

/// Returns the most bytes that compute_token_details() holds, in closed form.
std::int64_t token_details_workspace_bytes(const DetailsRequest& wanted, std::int64_t tokens,
                                           std::int64_t vocabulary_size, std::int64_t element_bytes);

}  // namespace decodelab
