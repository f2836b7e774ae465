// Keeps a batch at its greatest number of rows, whoever they belong to.
#include "variants/batching/batching_variant.h"

namespace decodelab {
namespace {

void apply(EnginePlan& plan, const Parameters& parameters) {
  plan.batching.bind("slot-batch", {.rows = BatchingRule::Rows::all, .chunk = parameters.integer("chunk")});
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  return expects_of_later_requests(counted, "placed_rows", true);
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "slot-batch",
    .summary = "A batch always has all its rows: a request takes the place of an idle one, and nothing else is copied.",
    .source = "SantaCoder study (text-generation-inference, bigcode): a fixed batch size, as graphs need it",
    .parameters = {chunk_parameter()},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
