// Lets requests join the rows that decode by concatenating, and drops those that ended by filtering.
#include "variants/batching/batching_variant.h"

namespace decodelab {
namespace {

constexpr std::int64_t kMostSteps = 1 << 20;

void apply(EnginePlan& plan, const Parameters& parameters) {
  plan.batching.bind("concatenate-filter", {.rows = BatchingRule::Rows::as_needed,
                                            .every = parameters.integer("steps"),
                                            .chunk = parameters.integer("chunk")});
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  return expects_of_later_requests(counted, "joined_rows", false);
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "concatenate-filter",
    .summary = "Requests join a batch that decodes, and leave it, by copies of all its keys and values.",
    .source = "SantaCoder study (text-generation-inference: concatenate and filter); Orca (Yu et al. 2022)",
    .parameters = {chunk_parameter(),
                   {.name = "steps",
                    .default_value = 1,
                    .minimum = 1,
                    .maximum = kMostSteps,
                    .help = "decode steps from one change of the batch to the next"}},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
