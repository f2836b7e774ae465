// Rounds the number of keys that a decode step is shown up to a multiple of n, so that matrix kernels get aligned
// shapes only.
#include "base/round_up.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

/// 16 bytes of a 16-bit type: the alignment that matrix kernels want for their loads (the study's step 3).
constexpr std::int64_t kDefaultMultiple = 8;
constexpr std::int64_t kMostMultiple = 4096;

void apply(EnginePlan& plan, const Parameters& parameters) {
  plan.key_padding.bind("padded-keys", parameters.integer("multiple"));
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters& parameters) {
  if (counted.phase != Phase::decode) {
    return {};  // a prefill sees its own keys only
  }
  if (!counted.plan.decode_attention.variant().empty()) {
    return {};  // libtorch's fused kernels are given the keys that are held where rows have one length, as counted rows
                // have
  }
  std::int64_t padding = 0;
  for (std::int64_t step = 1; step <= counted.steps; ++step) {
    const std::int64_t keys = counted.length + step;
    padding += rounded_up(keys, parameters.integer("multiple")) - keys;
  }
  if (padding == 0) {
    return {};
  }
  return {{"padding_keys", counted.config.layers * padding}};
}

std::string conflict(const EnginePlan& plan) {
  if (plan.decode_attention.variant() == "split-kv-decode") {
    return "padded-keys has no effect beside split-kv-decode, which reads the keys that a row holds and no more: "
           "remove "
           "one of them";
  }
  return "";
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "padded-keys",
    .summary = "A decode step sees a number of keys that is a multiple of n, the last ones masked.",
    .source = "SantaCoder study (text-generation-inference, bigcode), step 3",
    .parameters = {{.name = "multiple",
                    .default_value = kDefaultMultiple,
                    .minimum = 1,
                    .maximum = kMostMultiple,
                    .help = "keys that the length is rounded up to"}},
    .expects = expects,
    .unsupported = {},
    .conflict = conflict,
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
