// Draws the tokens of all sampled rows with one generator and one race.
#include "engine/kernels/philox.h"
#include "engine/sampling/rng.h"
#include "engine/tensor.h"
#include "profiles/range.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

/// Mixes all seeds into one: each bit of the result depends on every seed and on their order.
std::uint64_t mixed(const std::vector<std::uint64_t>& seeds) {
  std::uint64_t mix = 0;
  for (const std::uint64_t seed : seeds) {
    const PhiloxWords words = philox4x32(philox_counter(mix, seeds.size()), seed);
    mix = std::uint64_t{words.word[0]} << 32 | words.word[1];
  }
  return mix;
}

class BatchRng final : public Rng {
 public:
  explicit BatchRng(const RngOptions& options)
      : generator_(at::globalContext().defaultGenerator(at::Device(options.device)).clone()) {
    generator_.set_current_seed(mixed(options.seeds));
  }

  at::Tensor draw(const at::Tensor& probabilities) override {
    const at::Tensor exponential = at::empty_like(probabilities).exponential_(1, generator_);
    count_amount(Amount::random_draws, 1);
    return (probabilities / exponential).argmax(1, /*keepdim=*/true);
  }

  at::Tensor draw(const at::Tensor& probabilities, const std::vector<std::int64_t>&) override {
    return draw(probabilities);
  }

  /// One generator draws for all rows, so no row has a state of its own to keep.
  void select(const std::vector<std::int64_t>&) override {}
  void append(Rng&&) override {}

 private:
  at::Generator generator_;
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.rng.bind("batch-rng", [](const RngOptions& options) { return std::make_unique<BatchRng>(options); });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (!counted.sampled) {
    return {};
  }
  return {{"random_draws", counted.steps}, {"op.aten::exponential_", counted.steps}};
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "batch-rng",
    .summary = "One generator draws for all sampled rows at once; a row's tokens then depend on the rows beside it.",
    .source = "SantaCoder study (text-generation-inference, bigcode), step 6",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
