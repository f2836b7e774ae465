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

/// Holds what the log-probabilities of tokens that rows are fed come from. B rows, T tokens, V vocabulary.
struct FedTokens {
  const at::Tensor& all_logits;     ///< [B, T, V], those after each token
  const at::Tensor& logits_before;  ///< [B, V], those before the first token; undefined where no row held one
  const at::Tensor& ids;            ///< [B, T] int64
  const StepRows& rows;
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

/// Computes the log-probabilities of the tokens of one row, each under the logits before it, in fp32; the first token
/// of all has none.
std::vector<float> fed_log_probs(const FedTokens& fed, std::int64_t row);

/// Computes what is wanted of B chosen tokens, one row at a time, from their logits [B, V]. Log-probabilities are those
/// of the unprocessed logits, in fp32. Those of prompts are not its work.
std::vector<TokenDetails> compute_token_details(const at::Tensor& logits, const std::vector<std::int64_t>& token_ids,
                                                const DetailsRequest& wanted);

/// Returns the most bytes that both hold, in closed form.
std::int64_t token_details_workspace_bytes(const DetailsRequest& wanted, std::int64_t tokens,
                                           std::int64_t vocabulary_size, std::int64_t element_bytes);

}  // namespace decodelab
