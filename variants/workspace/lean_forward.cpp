// Positions and masks of a step are views of tables that a session makes once.
#include "engine/layers/workspace.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

class LeanWorkspace final : public PlainWorkspace {
 public:
  LeanWorkspace(std::int64_t positions, at::Device device) : tables_(positions, device) {}
  const StepTables* tables() const override { return &tables_; }

 private:
  StepTables tables_;
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.workspace.bind("lean-forward", [](std::int64_t positions, const std::string& device) {
    return std::make_unique<LeanWorkspace>(positions, at::Device(device));
  });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (counted.phase != Phase::decode) {
    return {};  // the mask of several tokens is no view of the table
  }
  // An operator that was not called has no counter: the reference makes its positions in each step.
  return {{"op.aten::arange", 0}};
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "lean-forward",
    .summary = "Positions and masks of steps whose rows have one length are views of tables made once.",
    .source = "inference_runner of the bigcode fork of transformers; SantaCoder study, step 7",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .conflict = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
