// Reads a step's tokens on the host after the next step was handed to the device.
#include <fmt/format.h>

#include "variants/registry.h"

namespace decodelab {
namespace {

void apply(EnginePlan& plan, const Parameters&) { plan.read_back.bind("late-read-back", ReadBack::async); }

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  // The first counted step has no earlier tokens to read.
  if (counted.phase != Phase::decode || counted.steps < 2) {
    return {};
  }
  return {{"late_reads", counted.steps - 1}};
}

std::string conflict(const EnginePlan& plan) {
  const std::string& choice = plan.token_choice.variant();
  return choice == "vectorized-choice"
             ? ""
             : fmt::format(
                   "late-read-back has nothing to read late beside {}, whose tokens are on the host as soon as "
                   "they are chosen: add vectorized-choice",
                   choice.empty() ? "the reference's choice" : choice);
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "late-read-back",
    .summary = "The host reads a step's tokens while the device runs the next; on a CPU nothing runs ahead.",
    .source = "SantaCoder study (text-generation-inference, bigcode), step 2: one copy to the host a step, read late",
    .parameters = {},
    .needs = {"vectorized-choice"},
    .expects = expects,
    .unsupported = {},
    .conflict = conflict,
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
