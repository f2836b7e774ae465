// Attention of a pass that verifies guesses, by the kernel of decode steps: each token has the bits of its own step.
#include "variants/decode_attention/split_kv.h"

namespace decodelab {
namespace {

void apply(EnginePlan& plan, const Parameters&) {
  plan.verify_attention.bind("split-kv-verify", [](const AttentionShape& shape, const SoftmaxFactory&) {
    return make_split_kv_attention(shape, "split-kv-verify");
  });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  const bool alone = counted.plan.decode_attention.variant() != "split-kv-decode";
  if (counted.phase != Phase::continuation || counted.plan.proposer.variant().empty() || alone) {
    return {};  // Nobody guesses, or the last step, which checks nothing, has the reference's products.
  }
  return {{"op.aten::baddbmm", 0}};
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "split-kv-verify",
    .summary = "Guesses attend by the kernel of decode steps, all of a row at once.",
    .source = "flash-decoding (Dao et al. 2023, https://pytorch.org/blog/flash-decoding/)",
    .parameters = {},
    .expects = expects,
    .unsupported = split_kv_unsupported,
    .conflict = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
