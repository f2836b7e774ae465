// Computes log-probabilities and ranks only when they were asked for.
#include "engine/sampling/token_details.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

class DetailsOnRequest final : public TokenDetailsPolicy {
 public:
  DetailsRequest effective(const DetailsRequest& requested) const override { return requested; }
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.token_details.bind("details-on-request", [] { return std::make_unique<DetailsOnRequest>(); });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (counted.details.any()) {
    return {};
  }
  return {{"details.operators", 0}};
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "details-on-request",
    .summary = "Log-probabilities and ranks are computed only for callers who asked for them.",
    .source = "SantaCoder study (text-generation-inference, bigcode), step 4",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
