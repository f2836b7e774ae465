// Sorts all logits of each row on the host.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "engine/sampling/top_tokens.h"
#include "engine/tensor.h"
#include "profiles/range.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

/// Returns whether logits say how likely tokens are.
bool is_distribution(const std::vector<RankedLogit>& sorted_logits) {
  return std::isfinite(sorted_logits.front().logit);
}

/// Returns the logits of a row in falling order, equal ones by their ids. NaN comes first.
std::vector<RankedLogit> sorted(const float* logits, std::int64_t width) {
  std::vector<RankedLogit> all;
  all.reserve(static_cast<std::size_t>(width));
  for (std::int64_t id = 0; id < width; ++id) {
    all.push_back({.logit = logits[id], .id = id});
  }
  std::ranges::sort(all, [](const RankedLogit& left, const RankedLogit& right) {
    if (std::isnan(left.logit) || std::isnan(right.logit)) {
      return std::isnan(left.logit) && !std::isnan(right.logit);
    }
    return left.logit == right.logit ? left.id < right.id : left.logit > right.logit;
  });
  return all;
}

TokenDetails details_of_row(const float* logits, std::int64_t width, std::int64_t id, const TokenRequest& wanted) {
  TokenDetails details;
  std::vector<RankedLogit> all = sorted(logits, width);
  if (!is_distribution(all)) {
    details.refused = true;
    return details;
  }
  double sum = 0;
  for (const RankedLogit& token : all) {
    sum += std::exp(token.logit - all.front().logit);
  }
  const double total = all.front().logit + std::log(sum);
  const auto log_prob = [total](float logit) { return static_cast<float>(logit - total); };
  if (wanted.log_prob) {
    details.log_prob = log_prob(logits[id]);
  }
  if (wanted.rank) {
    const auto first = std::ranges::lower_bound(all, logits[id], std::greater<>(), &RankedLogit::logit);
    details.rank = 1 + (first - all.begin());
  }
  for (const std::int64_t of : wanted.ids) {
    details.log_probs_of_ids.push_back(log_prob(logits[of]));
  }
  if (wanted.top > 0) {
    const std::int64_t last = std::min(wanted.top, width) - 1;
    const auto end =
        std::ranges::upper_bound(all, all[static_cast<std::size_t>(last)].logit, std::greater<>(), &RankedLogit::logit);
    all.erase(end, all.end());
    set_top(details, std::move(all), wanted, [&](const RankedLogit& token) { return log_prob(token.logit); });
  }
  return details;
}

class HostSort final : public TopTokens {
 public:
  PendingDetails start(const DetailsTask& task) const override {
    const at::Tensor logits = task.logits.to(at::kCPU, at::kFloat).contiguous();
    const at::Tensor ids = task.ids.cpu().contiguous();
    const std::int64_t width = logits.size(1);
    std::vector<TokenDetails> all(task.wanted.size());
    for (std::size_t token = 0; token < all.size(); ++token) {
      if (task.wanted[token]->any()) {
        count_amount(Amount::sorted_logits, width);
        const auto row = static_cast<std::int64_t>(token);
        all[token] = details_of_row(logits.const_data_ptr<float>() + row * width, width,
                                    ids.const_data_ptr<std::int64_t>()[row], *task.wanted[token]);
      }
    }
    return ready(std::move(all));
  }
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.top_tokens.bind("host-sort", [] { return std::make_unique<HostSort>(); });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (!counted.details.generated.any()) {
    return {};
  }
  const std::int64_t rows = counted.batch_size * counted.samples;
  return {{"sorted_logits", counted.steps * rows * counted.config.vocabulary_size, true}};
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "host-sort",
    .summary = "The host sorts all logits of each row, and sums the probabilities of all.",
    .source = "llama.cpp (github.com/ggml-org/llama.cpp): get_token_probabilities of its server",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
