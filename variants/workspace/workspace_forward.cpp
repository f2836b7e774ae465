// Lets a decode step write into the tensors of the step before it, instead of allocating its own.
#include <algorithm>
#include <array>
#include <vector>

#include "engine/layers/workspace.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

/// Holds the tensors that a part of a step has allocated; after rewind() the next step reuses those of the same shape
/// and dtype.
class Tape {
 public:
  void rewind() {
    for (Entry& entry : entries_) {
      entry.taken = false;
    }
  }
  at::Tensor allocate(at::IntArrayRef shape, const at::TensorOptions& options) {
    const auto fits = [&](const Entry& entry) {
      return !entry.taken && entry.tensor.sizes() == shape && entry.tensor.dtype() == options.dtype();
    };
    const auto found = std::ranges::find_if(entries_, fits);
    if (found != entries_.end()) {
      found->taken = true;
      return found->tensor;
    }
    entries_.push_back({.tensor = at::empty(shape, options), .taken = true});
    return entries_.back().tensor;
  }

 private:
  struct Entry {
    at::Tensor tensor;
    bool taken;
  };
  std::vector<Entry> entries_;
};

/// Layers alternate between two tapes, since the next layer still reads the residual of the one before; a third tape
/// serves what lies outside of layers.
class ReusedWorkspace final : public Workspace {
 public:
  ReusedWorkspace(std::int64_t positions, at::Device device) : tables_(positions, device) {}

  void begin_layer(std::int64_t layer) override {
    current_ = &layers_[static_cast<std::size_t>(layer % 2)];
    current_->rewind();
  }
  void end_layers() override { current_ = &outside_; }
  at::Tensor allocate(at::IntArrayRef shape, const at::TensorOptions& options) override {
    // A prefill has its own shape; reused, its tensors would hold the memory of the longest prompt for good.
    return decodes_ ? current_->allocate(shape, options) : at::empty(shape, options);
  }
  bool reuses() const override { return decodes_; }
  const StepTables* tables() const override { return &tables_; }

 protected:
  void begin_step(bool decodes) override {
    decodes_ = decodes;
    outside_.rewind();
    current_ = &outside_;
  }

 private:
  StepTables tables_;
  std::array<Tape, 2> layers_;
  Tape outside_;
  Tape* current_ = &outside_;
  bool decodes_ = false;
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.workspace.bind("workspace-forward", [](std::int64_t positions, const std::string& device) {
    return std::make_unique<ReusedWorkspace>(positions, at::Device(device));
  });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (counted.phase != Phase::decode) {
    return {};
  }
  return {{"op.aten::arange", 0}, {"mlp.allocations", 0}, {"projection.allocations", 0}};
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "workspace-forward",
    .summary = "A decode step writes into tensors that are there already; positions and masks are views of tables.",
    .source = "SantaCoder study, step 7; inference_runner of the bigcode fork of transformers",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .conflict = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
