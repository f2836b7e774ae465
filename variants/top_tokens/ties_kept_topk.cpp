// Finds how many tokens are as probable as the last wanted one, then as many with a second topk.
#include <algorithm>
#include <limits>

#include "variants/registry.h"
#include "variants/top_tokens/batch_details.h"
#include "variants/top_tokens/top_tokens_expectations.h"

namespace decodelab {
namespace {

/// The final version of text-generation-inference #604. There, rows are counted by what nonzero() finds in them, so
/// that a row of NaN, in which it finds nothing, gives its place to the next one; here each row has its own sum.
class TiesKeptTopk final : public TopTokens {
 public:
  PendingDetails start(const DetailsTask& task) const override {
    BatchDetails batch = batch_details(task);
    const std::int64_t vocabulary = task.logits.size(1);
    const std::int64_t most = std::min(most_top_tokens(task), vocabulary);
    if (most == 0) {
      return ready(std::move(batch.details));
    }
    std::vector<std::int64_t> last;
    for (const TokenRequest* wanted : task.wanted) {
      last.push_back(std::clamp<std::int64_t>(wanted->top, 1, most) - 1);
    }
    const at::Tensor highest = std::get<0>(at::topk(task.logits, most, 1));
    at::Tensor bounds = highest.gather(1, at::tensor(last, at::kLong).to(highest.device()).unsqueeze(1));
    bounds = bounds.masked_fill(bounds == -std::numeric_limits<double>::infinity(), lowest(bounds.scalar_type()));
    const at::Tensor counts = (task.logits >= bounds).sum(1).cpu();
    const at::Tensor ids =
        std::get<1>(at::topk(task.logits, std::max<std::int64_t>(counts.max().item<std::int64_t>(), 1), 1));
    for (std::size_t token = 0; token < batch.details.size(); ++token) {
      const auto row = static_cast<std::int64_t>(token);
      if (task.wanted[token]->top > 0 && !batch.details[token].refused) {
        set_top(batch.details[token], ids[row].narrow(0, 0, counts.const_data_ptr<std::int64_t>()[token]),
                task.logits[row], batch.log_probs[row], *task.wanted[token]);
      }
    }
    return ready(std::move(batch.details));
  }

 private:
  /// Returns the lowest finite number of a type.
  static double lowest(at::ScalarType type) {
    switch (type) {
      case at::kHalf: return std::numeric_limits<at::Half>::lowest();
      case at::kBFloat16: return std::numeric_limits<at::BFloat16>::lowest();
      default: return std::numeric_limits<float>::lowest();
    }
  }
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.top_tokens.bind("ties-kept-topk", [] { return std::make_unique<TiesKeptTopk>(); });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  return operator_calls(counted, "op.aten::topk", 2);
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "ties-kept-topk",
    .summary = "A topk finds the last of the most probable tokens, a count those as probable, and a second topk all.",
    .source = "text-generation-inference #604, the final version",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
