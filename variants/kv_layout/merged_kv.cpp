// Keeps a token's key and value side by side, so that a step writes them once.
#include "variants/registry.h"

namespace decodelab {
namespace {

void apply(EnginePlan& plan, const Parameters&) { plan.kv_layout.bind("merged-kv", KvLayout::merged); }

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  return {{"cache_writes", counted.config.layers * counted.steps}};
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "merged-kv",
    .summary = "Keys and values of a layer lie in one tensor, written by one operation.",
    .source = "SantaCoder study (text-generation-inference, bigcode), step 3",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .conflict = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
