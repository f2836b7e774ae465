// Copies the keys and values of a prompt's beginning from what an earlier prompt left.
#include "variants/prefix_reuse/prefix_expectations.h"

namespace decodelab {
namespace {

void apply(EnginePlan& plan, const Parameters&) { plan.prefix_reuse.bind("copied-prefix", PrefixReuse::copied); }

[[maybe_unused]] const bool registered = register_variant({
    .name = "copied-prefix",
    .summary = "Prompts that begin like earlier ones are prefilled from where they differ, where the caller keeps a "
               "prefix store.",
    .source = "SGLang's radix cache (Zheng et al. 2024, arXiv:2312.07104); vLLM's prefix caching",
    .parameters = {},
    .expects = [](const CountedSteps& counted, const Parameters&) { return prefix_hits(counted); },
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
