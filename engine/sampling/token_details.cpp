// Log-probabilities and ranks of one step's tokens, a row at a time.
#include "engine/sampling/token_details.h"

#include "engine/layers/step_rows.h"

namespace decodelab {
namespace {

class DetailsAlways final : public TokenDetailsPolicy {
 public:
  DetailsRequest effective(const DetailsRequest&) const override {
    return {.prefill_log_probs = true, .token_log_prob = true, .rank = true};
  }
};

std::vector<float> prefill_log_probs(const DetailsInput& input, std::int64_t row) {
  const std::int64_t length = input.rows.added()[static_cast<std::size_t>(row)];
  const at::Tensor log_probs = at::log_softmax((*input.all_logits)[row].narrow(0, 0, length - 1), -1, at::kFloat);
  const at::Tensor next_ids = input.input_ids[row].narrow(0, 1, length - 1);
  const at::Tensor chosen = log_probs.gather(1, next_ids.unsqueeze(1)).squeeze(1).cpu();
  return {chosen.const_data_ptr<float>(), chosen.const_data_ptr<float>() + chosen.numel()};
}

}  // namespace

std::unique_ptr<TokenDetailsPolicy> make_details_always() { return std::make_unique<DetailsAlways>(); }

std::vector<TokenDetails> compute_token_details(const DetailsInput& input, const DetailsRequest& wanted) {
  std::vector<TokenDetails> details(input.token_ids.size());
  for (std::size_t row = 0; row < details.size(); ++row) {
    const auto index = static_cast<std::int64_t>(row);
    const at::Tensor logits = input.last_logits[index];
    const std::int64_t token = input.token_ids[row];
    if (wanted.prefill_log_probs && input.prefill && input.all_logits != nullptr && input.rows.added()[row] > 1) {
      details[row].prefill_log_probs = prefill_log_probs(input, index);
    }
    if (wanted.token_log_prob) {
      details[row].token_log_prob = at::log_softmax(logits, -1, at::kFloat)[token].item<float>();
    }
    if (wanted.rank) {
      details[row].rank = 1 + (logits > logits[token]).sum().item<std::int64_t>();
    }
  }
  return details;
}

std::int64_t token_details_workspace_bytes(const DetailsRequest& wanted, std::int64_t tokens,
                                           std::int64_t vocabulary_size, std::int64_t element_bytes) {
  // One row at a time: its log-softmax in fp32 and, for 16-bit types, its logits raised to fp32.
  const std::int64_t positions = wanted.prefill_log_probs ? tokens : (wanted.any() ? 1 : 0);
  return positions * vocabulary_size * (element_bytes == 4 ? 4 : 8);
}

}  // namespace decodelab
