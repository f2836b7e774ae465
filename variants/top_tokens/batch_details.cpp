// Operators over all tokens at once.
#include "variants/top_tokens/batch_details.h"

#include <cmath>
#include <unordered_map>
#include <utility>

namespace decodelab {

BatchDetails batch_details(const DetailsTask& task) {
  BatchDetails batch{.log_probs = at::log_softmax(task.logits, -1, at::kFloat),
                     .details = std::vector<TokenDetails>(task.wanted.size())};
  const at::Tensor own = batch.log_probs.gather(1, task.ids).cpu();
  at::Tensor greater;
  for (const TokenRequest* wanted : task.wanted) {
    if (wanted->rank && !greater.defined()) {
      greater = (task.logits > task.logits.gather(1, task.ids)).sum(1).cpu();
    }
  }
  for (std::size_t token = 0; token < batch.details.size(); ++token) {
    TokenDetails& details = batch.details[token];
    const TokenRequest& wanted = *task.wanted[token];
    const float log_prob = own.const_data_ptr<float>()[token];
    details.refused = wanted.any() && std::isnan(log_prob);
    if (!wanted.any() || details.refused) {
      continue;
    }
    details.log_prob = wanted.log_prob ? log_prob : 0;
    details.rank = wanted.rank ? 1 + greater.const_data_ptr<std::int64_t>()[token] : 0;
    if (!wanted.ids.empty()) {
      const at::Tensor of_ids = batch.log_probs[static_cast<std::int64_t>(token)]
                                    .index_select(0, at::tensor(wanted.ids, at::kLong).to(batch.log_probs.device()))
                                    .cpu();
      details.log_probs_of_ids.assign(of_ids.const_data_ptr<float>(), of_ids.const_data_ptr<float>() + of_ids.numel());
    }
  }
  return batch;
}

void set_top(TokenDetails& details, const at::Tensor& ids, const at::Tensor& logits, const at::Tensor& log_probs,
             const TokenRequest& wanted) {
  const at::Tensor on_host = ids.cpu();
  const at::Tensor values = logits.index_select(0, ids).to(at::kCPU, at::kFloat);
  const at::Tensor logs = log_probs.index_select(0, ids).cpu();
  std::vector<RankedLogit> some;
  std::unordered_map<std::int64_t, float> log_prob_of;
  for (std::int64_t place = 0; place < on_host.numel(); ++place) {
    const std::int64_t id = on_host.const_data_ptr<std::int64_t>()[place];
    some.push_back({.logit = values.const_data_ptr<float>()[place], .id = id});
    log_prob_of[id] = logs.const_data_ptr<float>()[place];
  }
  set_top(details, std::move(some), wanted, [&](const RankedLogit& token) { return log_prob_of.at(token.id); });
}

at::Tensor ids_from(const at::Tensor& logits, const at::Tensor& bound) { return (logits >= bound).nonzero().flatten(); }

}  // namespace decodelab
