// The parts of a decode step between two attentions are CUDA graphs; attention, whose shapes change, is issued between
// them.
#include "variants/step_runner/graph_variant.h"

namespace decodelab {
namespace {

constexpr const char* kName = "cuda-graph-partial";

void apply(EnginePlan& plan, const Parameters& parameters) {
  bind_graph_runner(plan, kName, GraphScope::around_attention, {.most_rows = parameters.integer("rows")});
}

[[maybe_unused]] const bool registered = register_variant({
    .name = kName,
    .summary = "All of a decode step but its attention is recorded and launched as CUDA graphs, one more than layers.",
    .source = "inference_runner of the bigcode fork of transformers; vLLM's piecewise graphs",
    .parameters = {most_rows_parameter()},
    .needs = {"workspace-forward"},
    .expects = [](const CountedSteps& counted,
                  const Parameters&) { return graphs_expected(counted, GraphScope::around_attention); },
    .unsupported = graphs_unsupported,
    .conflict = [](const EnginePlan& plan) { return graph_conflict(kName, GraphScope::around_attention, plan); },
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
