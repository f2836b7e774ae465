// Looks prompts up and keeps them, and uses nothing of what it finds.
#include "variants/registry.h"

namespace decodelab {
namespace {

void apply(EnginePlan& plan, const Parameters&) { plan.prefix_reuse.bind("forced-miss", PrefixReuse::missed); }

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (!counted.stored_tokens || (counted.phase != Phase::prefill && counted.phase != Phase::batching)) {
    return {};
  }
  const std::int64_t prompts = counted.phase == Phase::batching ? counted.requests : counted.batch_size;
  return {{"prefix_lookups", counted.steps * prompts, true}, {"prefix_tokens", 0}};
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "forced-miss",
    .summary =
        "Prompts are looked up in a prefix store and kept there, and none is found: what the store itself costs.",
    .source = "a control arm, so that the cost of a prefix store and its benefit are told apart",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
