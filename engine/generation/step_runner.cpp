// The reference of the step runner.
#include "engine/generation/step_runner.h"

#include "engine/layers/step_rows.h"
#include "engine/layers/step_tensors.h"
#include "engine/layers/transformer.h"
#include "engine/layers/workspace.h"
#include "engine/tensor.h"

namespace decodelab {
namespace {

class EagerRunner final : public StepRunner {
 public:
  explicit EagerRunner(const StepRunnerOptions& options) : options_(options) {}

  at::Tensor decode(const DecodeStep& step) override {
    const at::Tensor hidden = forward(options_.transformer, options_.attention, step.cache, step.ids,
                                      {.rows = step.rows, .workspace = step.workspace, .encoded = step.encoded});
    return options_.transformer.head(hidden.flatten(0, 1), step.workspace);
  }

  Verified verify(const DecodeStep& step) override { return verify_eagerly(options_, step); }

 private:
  StepRunnerOptions options_;
};

}  // namespace

Verified verify_eagerly(const StepRunnerOptions& options, const DecodeStep& step) {
  const at::Tensor hidden =
      forward(options.transformer, options.verify_attention, step.cache, step.rows.packed(step.ids),
              {.rows = step.rows, .workspace = step.workspace, .encoded = step.encoded})
          .flatten(0, 1);
  return {.hidden = hidden, .logits = options.transformer.head(hidden, step.workspace)};
}

std::unique_ptr<StepRunner> make_eager_runner(const StepRunnerOptions& options) {
  return std::make_unique<EagerRunner>(options);
}

}  // namespace decodelab
