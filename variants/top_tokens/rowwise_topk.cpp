// Finds the most probable tokens of each row with one topk.
#include "variants/registry.h"
#include "variants/top_tokens/batch_details.h"
#include "variants/top_tokens/top_tokens_expectations.h"

namespace decodelab {
namespace {

class RowwiseTopk final : public TopTokens {
 public:
  PendingDetails start(const DetailsTask& task) const override {
    BatchDetails batch = batch_details(task);
    for (std::size_t token = 0; token < batch.details.size(); ++token) {
      const TokenRequest& wanted = *task.wanted[token];
      if (wanted.top == 0 || batch.details[token].refused) {
        continue;
      }
      const at::Tensor logits = task.logits[static_cast<std::int64_t>(token)];
      const at::Tensor values = std::get<0>(at::topk(logits, std::min(wanted.top, logits.size(0))));
      set_top(batch.details[token], ids_from(logits, values[-1]), logits,
              batch.log_probs[static_cast<std::int64_t>(token)], wanted);
    }
    return ready(std::move(batch.details));
  }
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.top_tokens.bind("rowwise-topk", [] { return std::make_unique<RowwiseTopk>(); });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  return operator_calls(counted, "op.aten::topk", counted.batch_size * counted.samples);
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "rowwise-topk",
    .summary = "The most probable tokens of each row come from a topk of its own, and no sort.",
    .source = "text-generation-inference #604, the first version without its sort",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
