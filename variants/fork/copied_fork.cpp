// Prefills a prompt once for all of its samples, and copies its keys and values for each.
#include "variants/registry.h"

namespace decodelab {
namespace {

void apply(EnginePlan& plan, const Parameters&) { plan.fork.bind("copied-fork", ForkWay::copied); }

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (counted.samples == 1 || counted.phase != Phase::prefill) {
    return {};
  }
  return {{"forked_rows", counted.steps * counted.batch_size * counted.samples}};
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "copied-fork",
    .summary = "Samples of one prompt begin with copies of the keys and values of one prefill.",
    .source = "vLLM (Kwon et al. 2023, arXiv:2309.06180), parallel sampling, without its shared blocks",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
