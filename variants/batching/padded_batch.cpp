// Keeps the rows of a batch at powers of two, so that few shapes occur.
#include "variants/batching/batching_variant.h"

namespace decodelab {
namespace {

void apply(EnginePlan& plan, const Parameters& parameters) {
  plan.batching.bind("padded-batch", {.rows = BatchingRule::Rows::powers_of_two, .chunk = parameters.integer("chunk")});
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  // A batch of a power of two that is full has an idle row for each that ended.
  return expects_of_later_requests(counted, "placed_rows", false);
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "padded-batch",
    .summary = "A batch has a power of two of rows: requests take the places of idle ones, and it is copied only where "
               "that number changes.",
    .source = "SantaCoder study (text-generation-inference, bigcode): fixed batch sizes, powers of two",
    .parameters = {chunk_parameter()},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
