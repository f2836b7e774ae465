// Finds the most probable tokens of all rows with one topk; only a row whose last place is tied is looked at again.
#include <algorithm>

#include "variants/registry.h"
#include "variants/top_tokens/batch_details.h"
#include "variants/top_tokens/top_tokens_expectations.h"

namespace decodelab {
namespace {

/// vLLM and the second version of text-generation-inference #604 take the first n of a topk, and of equal tokens some.
/// One more than n is taken here, so that a tie shows, and the same tokens come as from a sort.
class BatchedTopk final : public TopTokens {
 public:
  PendingDetails start(const DetailsTask& task) const override {
    BatchDetails batch = batch_details(task);
    const std::int64_t most = std::min(most_top_tokens(task) + 1, task.logits.size(1));
    if (most_top_tokens(task) == 0) {
      return ready(std::move(batch.details));
    }
    const auto [values, ids] = at::topk(task.logits, most, 1);
    const at::Tensor on_host = values.to(at::kCPU, at::kFloat).contiguous();
    for (std::size_t token = 0; token < batch.details.size(); ++token) {
      const TokenRequest& wanted = *task.wanted[token];
      if (wanted.top == 0 || batch.details[token].refused) {
        continue;
      }
      const auto row = static_cast<std::int64_t>(token);
      const float* const falling = on_host.const_data_ptr<float>() + row * most;
      const bool tied = wanted.top < most && falling[wanted.top - 1] == falling[wanted.top];
      const at::Tensor logits = task.logits[row];
      set_top(batch.details[token],
              tied ? ids_from(logits, values[row][wanted.top - 1]) : ids[row].narrow(0, 0, std::min(wanted.top, most)),
              logits, batch.log_probs[row], wanted);
    }
    return ready(std::move(batch.details));
  }
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.top_tokens.bind("batched-topk", [] { return std::make_unique<BatchedTopk>(); });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  return operator_calls(counted, "op.aten::topk", 1);
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "batched-topk",
    .summary = "The most probable tokens of all rows come from one topk.",
    .source = "vLLM; text-generation-inference #604, the batched version",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
