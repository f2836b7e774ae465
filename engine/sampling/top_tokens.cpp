// The reference of details: a token at a time.
#include "engine/sampling/top_tokens.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/tensor.h"

namespace decodelab {
namespace {

/// Returns the details of one token from its logits, [V].
TokenDetails details_of(const at::Tensor& logits, std::int64_t id, const TokenRequest& wanted) {
  TokenDetails details;
  const at::Tensor log_probs = at::log_softmax(logits, -1, at::kFloat);
  const auto log_prob = [&](std::int64_t of) { return log_probs[of].item<float>(); };
  const float own = log_prob(id);
  if (std::isnan(own)) {
    details.refused = true;
    return details;
  }
  if (wanted.log_prob) {
    details.log_prob = own;
  }
  if (wanted.rank) {
    details.rank = 1 + (logits > logits[id]).sum().item<std::int64_t>();
  }
  for (const std::int64_t of : wanted.ids) {
    details.log_probs_of_ids.push_back(log_prob(of));
  }
  if (wanted.top > 0) {
    const auto [values, order] = at::sort(logits, /*stable=*/true, /*dim=*/0, /*descending=*/true);
    std::vector<RankedLogit> some;
    for (std::int64_t place = 0; place < logits.size(0); ++place) {
      const auto logit = values[place].item<float>();
      if (place >= wanted.top && logit < some[static_cast<std::size_t>(wanted.top - 1)].logit) {
        break;
      }
      some.push_back({.logit = logit, .id = order[place].item<std::int64_t>()});
    }
    set_top(details, std::move(some), wanted, [&](const RankedLogit& token) { return log_prob(token.id); });
  }
  return details;
}

/// Log-probabilities alone, as those of a whole prompt, need no look at single rows.
void set_log_probs(const DetailsTask& task, std::vector<TokenDetails>& all) {
  const at::Tensor log_probs = at::log_softmax(task.logits, -1, at::kFloat).gather(1, task.ids).squeeze(1).cpu();
  for (std::size_t token = 0; token < all.size(); ++token) {
    const float own = log_probs.const_data_ptr<float>()[token];
    all[token].refused = std::isnan(own);
    all[token].log_prob = all[token].refused ? 0 : own;
  }
}

class RowDetailsEach final : public TopTokens {
 public:
  PendingDetails start(const DetailsTask& task) const override {
    std::vector<TokenDetails> all(task.wanted.size());
    if (std::ranges::all_of(task.wanted,
                            [](const TokenRequest* of) { return *of == TokenRequest{.log_prob = true}; })) {
      set_log_probs(task, all);
      return ready(std::move(all));
    }
    const at::Tensor ids = task.ids.is_cpu() ? task.ids : task.ids.cpu();
    for (std::size_t token = 0; token < all.size(); ++token) {
      const auto row = static_cast<std::int64_t>(token);
      if (task.wanted[token]->any()) {
        all[token] = details_of(task.logits[row], ids.const_data_ptr<std::int64_t>()[row], *task.wanted[token]);
      }
    }
    return ready(std::move(all));
  }
};

}  // namespace

std::unique_ptr<TopTokens> make_row_details() { return std::make_unique<RowDetailsEach>(); }

PendingDetails ready(std::vector<TokenDetails> details) {
  return [all = std::move(details)]() mutable { return std::move(all); };
}

std::int64_t most_top_tokens(const DetailsTask& task) {
  std::int64_t most = 0;
  for (const TokenRequest* wanted : task.wanted) {
    most = std::max(most, wanted->top);
  }
  return most;
}

void set_top(TokenDetails& details, const LargestLogits& largest,
             const std::function<float(const RankedLogit&)>& log_prob_of) {
  details.tied = largest.tied;
  details.truncated = largest.truncated;
  for (const RankedLogit& token : largest.logits) {
    details.top.push_back({.id = token.id, .log_prob = log_prob_of(token)});
  }
}

void set_top(TokenDetails& details, std::vector<RankedLogit> some, const TokenRequest& wanted,
             const std::function<float(const RankedLogit&)>& log_prob_of) {
  set_top(details, largest_of(std::move(some), wanted.top, wanted.ties), log_prob_of);
}

std::int64_t details_workspace_bytes(const TokenRequest& wanted, std::int64_t tokens, std::int64_t vocabulary_size,
                                     std::int64_t element_bytes) {
  if (!wanted.any()) {
    return 0;
  }
  // Log-softmax in fp32 and, for 16-bit types, logits raised to fp32; the sort of one row has numbers and places.
  const std::int64_t of_a_logit = element_bytes == 4 ? 4 : 8;
  const std::int64_t sorted = wanted.top > 0 ? element_bytes + 8 : 0;
  return vocabulary_size * (tokens * of_a_logit + sorted);
}

}  // namespace decodelab
