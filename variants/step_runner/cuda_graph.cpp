// A decode step, or a pass over guesses, is one CUDA graph for its bucket of rows and keys; the choice of tokens stays
// outside.
#include "variants/step_runner/graph_variant.h"

namespace decodelab {
namespace {

constexpr const char* kName = "cuda-graph";

void apply(EnginePlan& plan, const Parameters& parameters) {
  bind_graph_runner(plan, kName, GraphScope::whole_step,
                    {.most_rows = parameters.integer("rows"), .keys_multiple = parameters.integer("keys")});
}

[[maybe_unused]] const bool registered = register_variant({
    .name = kName,
    .summary = "A decode step is recorded once a bucket of rows and keys, and launched as one CUDA graph.",
    .source = "inference_runner of the bigcode fork of transformers; text-generation-inference; vLLM",
    .parameters = {{.name = "keys",
                    .default_value = kDefaultKeysMultiple,
                    .minimum = 1,
                    .maximum = kMostKeysMultiple,
                    .help = "keys that the length is rounded up to"},
                   most_rows_parameter()},
    .needs = {"kv-static", "workspace-forward"},
    .expects = [](const CountedSteps& counted,
                  const Parameters&) { return graphs_expected(counted, GraphScope::whole_step); },
    .unsupported = graphs_unsupported,
    .conflict = [](const EnginePlan& plan) { return graph_conflict(kName, GraphScope::whole_step, plan); },
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
