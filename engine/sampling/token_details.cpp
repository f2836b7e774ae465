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

}  // namespace

std::unique_ptr<TokenDetailsPolicy> make_details_always() { return std::make_unique<DetailsAlways>(); }

std::vector<float> fed_log_probs(const FedTokens& fed, std::int64_t row) {
  const std::int64_t tokens = fed.rows.added()[static_cast<std::size_t>(row)];
  const bool continues = fed.logits_before.defined() && fed.rows.past()[static_cast<std::size_t>(row)] > 0;
  const std::int64_t first = continues ? 0 : 1;
  if (tokens <= first) {
    return {};
  }
  at::Tensor logits = fed.all_logits[row].narrow(0, 0, tokens - 1);
  if (continues) {
    logits = at::cat({fed.logits_before.narrow(0, row, 1), logits});
  }
  const at::Tensor ids = fed.ids[row].narrow(0, first, tokens - first);
  const at::Tensor chosen = at::log_softmax(logits, -1, at::kFloat).gather(1, ids.unsqueeze(1)).squeeze(1).cpu();
  return {chosen.const_data_ptr<float>(), chosen.const_data_ptr<float>() + chosen.numel()};
}

std::vector<TokenDetails> compute_token_details(const at::Tensor& logits, const std::vector<std::int64_t>& token_ids,
                                                const DetailsRequest& wanted) {
  std::vector<TokenDetails> details(token_ids.size());
  for (std::size_t row = 0; row < details.size(); ++row) {
    const at::Tensor of_row = logits[static_cast<std::int64_t>(row)];
    const std::int64_t token = token_ids[row];
    if (wanted.token_log_prob) {
      details[row].token_log_prob = at::log_softmax(of_row, -1, at::kFloat)[token].item<float>();
    }
    if (wanted.rank) {
      details[row].rank = 1 + (of_row > of_row[token]).sum().item<std::int64_t>();
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
