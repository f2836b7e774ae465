// Copies the keys and values of a prompt's beginning from what an earlier prompt left.
#include "variants/registry.h"

namespace decodelab {
namespace {

void apply(EnginePlan& plan, const Parameters&) { plan.prefix_reuse.bind("copied-prefix", PrefixReuse::copied); }

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (!counted.stored_tokens) {
    return {};
  }
  if (counted.phase == Phase::batching) {  // How many prompts find one, is a question of when they come.
    return {{"prefix_tokens", *counted.stored_tokens > 0 ? 1 : 0, true}};
  }
  if (counted.phase != Phase::prefill) {
    return {};
  }
  // Prompts that are prefilled for each of their samples look for themselves.
  const std::int64_t rows =
      counted.batch_size * (counted.plan.fork.value() == ForkWay::prefill_each ? counted.samples : 1);
  return {{"prefix_lookups", counted.steps * rows}, {"prefix_tokens", counted.steps * rows * *counted.stored_tokens}};
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "copied-prefix",
    .summary = "Prompts that begin like earlier ones are prefilled from where they differ, where the caller keeps a "
               "prefix store.",
    .source = "SGLang's radix cache (Zheng et al. 2024, arXiv:2312.07104); vLLM's prefix caching",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
