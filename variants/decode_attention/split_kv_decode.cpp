// Decode attention by our own kernel, which reads each key and value once for all the heads that share it and splits
// long rows among threads.
#include "variants/decode_attention/split_kv.h"

namespace decodelab {
namespace {

void apply(EnginePlan& plan, const Parameters&) {
  plan.decode_attention.bind("split-kv-decode", [](const AttentionShape& shape, const SoftmaxFactory&) {
    return make_split_kv_attention(shape, "split-kv-decode");
  });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (counted.phase != Phase::decode) {
    return {};
  }
  // An operator that was not called has no counter: the reference's products of queries and keys.
  return {{"op.aten::baddbmm", 0}};
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "split-kv-decode",
    .summary = "Decode attention reads each key and value once for all heads that share it, and splits long rows.",
    .source = "flash-decoding (Dao et al. 2023, https://pytorch.org/blog/flash-decoding/)",
    .parameters = {},
    .expects = expects,
    .unsupported = split_kv_unsupported,
    .conflict = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
