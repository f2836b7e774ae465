// Runs the language-model head on pieces of a prompt, whose logits are dropped when their details are known.
#include "engine/layers/lm_head_rows.h"
#include "engine/sampling/token_details.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

class ChunkedRows final : public LmHeadRows {
 public:
  explicit ChunkedRows(std::int64_t tokens) : tokens_(tokens) {}

  bool all_positions(const DetailsRequest& requested) const override { return requested.prompt.any(); }
  std::int64_t piece() const override { return tokens_; }

 private:
  std::int64_t tokens_;
};

void apply(EnginePlan& plan, const Parameters& parameters) {
  plan.lm_head_rows.bind("chunked-lm-head",
                         [tokens = parameters.integer("tokens")] { return std::make_unique<ChunkedRows>(tokens); });
}

/// Of prompts whose details nobody wants, only the last tokens have logits.
std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (counted.phase != Phase::prefill || counted.details.prompt.any()) {
    return {};
  }
  return {{"lm_head_rows", counted.batch_size * counted.steps}};
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "chunked-lm-head",
    .summary = "As last-token-lm-head; where details of prompts are asked for, their logits are computed in pieces.",
    .source = "Chunked cross-entropy (Liger kernel, arXiv:2410.10989), without its gradient",
    .parameters = {{.name = "tokens",
                    .default_value = 64,
                    .minimum = 1,
                    .maximum = 65536,
                    .help = "tokens of a prompt whose logits are held at a time"}},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
