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
  explicit EagerRunner(const StepRunnerOptions& options)
      : transformer_(options.transformer), attention_(options.attention) {}

  at::Tensor decode(const DecodeStep& step) override {
    const at::Tensor hidden = forward(transformer_, attention_, step.cache, step.ids,
                                      {.rows = step.rows, .workspace = step.workspace, .encoded = step.encoded});
    return transformer_.head(hidden.flatten(0, 1), step.workspace);
  }

 private:
  const Transformer& transformer_;
  const Attention& attention_;
};

}  // namespace

std::unique_ptr<StepRunner> make_eager_runner(const StepRunnerOptions& options) {
  return std::make_unique<EagerRunner>(options);
}

}  // namespace decodelab
