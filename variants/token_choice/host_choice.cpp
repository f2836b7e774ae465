// Copies the logits of a step to the host, and chooses there: what logits cost that cross.
#include "engine/kernels/element_type.h"
#include "engine/sampling/chosen_tokens.h"
#include "engine/sampling/token_choice.h"
#include "engine/sampling/token_history.h"
#include "engine/tensor.h"
#include "profiles/range.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

/// The reference's choice on a copy of the logits. On a CPU the copy stays in the same memory, and costs its time.
class HostChoice final : public TokenChoice {
 public:
  explicit HostChoice(const ChoiceOptions& options)
      : rows_(make_row_by_row_choice({.rows = options.rows, .device = "cpu", .make_rng = options.make_rng})) {}

  ChosenTokens choose(const ChoiceTask& task) override {
    const at::Tensor host = task.logits.to(at::kCPU, task.logits.scalar_type(), false, true);
    count_amount(Amount::host_logit_bytes, static_cast<std::int64_t>(host.nbytes()));
    ChosenTokens chosen =
        rows_->choose({.logits = host, .history = task.history, .workspace = task.workspace, .rows = task.rows});
    chosen.device = chosen.device.to(task.logits.device());
    return chosen;
  }

  void select(const std::vector<std::int64_t>& rows) override { rows_->select(rows); }
  void append(RowPart& other) override { rows_->append(*dynamic_cast<HostChoice&>(other).rows_); }

 private:
  std::unique_ptr<TokenChoice> rows_;
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.token_choice.bind("host-choice",
                         [](const ChoiceOptions& options) { return std::make_unique<HostChoice>(options); });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  const auto bytes = static_cast<std::int64_t>(element_bytes(counted.dtype));
  return {{"host_logit_bytes", counted.steps * counted.batch_size * counted.config.vocabulary_size * bytes}};
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "host-choice",
    .summary = "The logits of each step are copied to the host, which chooses from them row by row.",
    .source = "Interfaces that return logits, and leave the choice to their caller",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
