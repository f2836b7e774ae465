// Lets prompts begin with the pages that an earlier prompt left in the store.
#include "base/round_up.h"
#include "engine/layers/kv_pages.h"
#include "variants/prefix_reuse/prefix_expectations.h"

namespace decodelab {
namespace {

void apply(EnginePlan& plan, const Parameters&) { plan.prefix_reuse.bind("shared-prefix", PrefixReuse::shared); }

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  std::vector<Expectation> all = prefix_hits(counted);
  if (counted.stored_tokens && counted.phase == Phase::prefill) {
    all.push_back({"prefix_pages", counted.steps * prompts_that_look(counted) * counted.config.layers *
                                       divided_up(*counted.stored_tokens, kPageTokens)});
  }
  return all;
}

std::string conflict(const EnginePlan& plan) {
  return plan.kv_growth.variant() == "kv-paged"
             ? ""
             : "shared-prefix shares pages of keys and values, which kv-paged alone has: add it, or reuse prefixes by "
               "copied-prefix";
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "shared-prefix",
    .summary = "Prompts that begin like earlier ones share their pages, where the caller keeps a prefix store; a page "
               "is copied when one of them writes into it.",
    .source = "vLLM's automatic prefix caching (Kwon et al. 2023, arXiv:2309.06180)",
    .parameters = {},
    .needs = {"kv-paged", "split-kv-decode"},
    .expects = expects,
    .unsupported = {},
    .conflict = conflict,
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
