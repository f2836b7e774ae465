// Prefills a prompt once for all of its samples, which share its pages.
#include "variants/registry.h"

namespace decodelab {
namespace {

void apply(EnginePlan& plan, const Parameters&) { plan.fork.bind("shared-fork", ForkWay::shared); }

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (counted.samples == 1 || counted.phase != Phase::prefill) {
    return {};
  }
  std::vector<Expectation> all{{"forked_rows", counted.steps * counted.batch_size * counted.samples}};
  if (counted.stored_tokens.value_or(0) == 0) {  // A prompt that goes on behind a prefix copies what it writes into.
    all.push_back({"copied_cache_bytes", 0});
  }
  return all;
}

std::string conflict(const EnginePlan& plan) {
  return plan.kv_growth.variant() == "kv-paged"
             ? ""
             : "shared-fork shares pages of keys and values, which kv-paged alone has: add it, or fork by copied-fork";
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "shared-fork",
    .summary =
        "Samples of one prompt share the pages of one prefill; a page is copied when one of them writes into it.",
    .source = "vLLM (Kwon et al. 2023, arXiv:2309.06180), parallel sampling with copy on write",
    .parameters = {},
    .needs = {"kv-paged", "split-kv-decode"},
    .expects = expects,
    .unsupported = {},
    .conflict = conflict,
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
