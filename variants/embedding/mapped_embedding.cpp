// Looks tokens up in the checkpoint's file.
#include "engine/layers/embedding.h"
#include "engine/layers/workspace.h"
#include "engine/tensor.h"
#include "profiles/range.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

class MappedEmbedding final : public Embedding {
 public:
  MappedEmbedding(const EmbeddingWeights& weights, const at::TensorOptions& options)
      : width_(weights.width), read_rows_(weights.read_rows), options_(options) {}

  at::Tensor looked_up(const at::Tensor& ids, Workspace& workspace) const override {
    at::DimVector shape(ids.sizes());
    shape.push_back(width_);
    at::Tensor rows = workspace.allocate(shape, options_);
    read_rows_(ids.reshape({-1}), rows.view({-1, width_}));
    count_amount(Amount::mapped_rows, ids.numel());
    return rows;
  }

 private:
  std::int64_t width_;
  std::function<void(const at::Tensor&, const at::Tensor&)> read_rows_;
  at::TensorOptions options_;
};

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  return {{"mapped_rows", counted.steps, true}};
}

void apply(EnginePlan& plan, const Parameters&) {
  plan.embedding.bind("mapped-embedding", [](const EmbeddingWeights& weights) {
    return std::make_unique<MappedEmbedding>(weights, weights.options());
  });
}

std::string unsupported(const RunsOn& where) {
  return where.device == "cpu" ? "" : "rows of a file in the host's memory are copied by its processor";
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "mapped-embedding",
    .summary = "Looks tokens up in the checkpoint's mapped file, so that the table is not held in memory again.",
    .source = "llama.cpp (github.com/ggml-org/llama.cpp): ggml_get_rows of a quantized token_embd",
    .parameters = {},
    .expects = expects,
    .unsupported = unsupported,
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
