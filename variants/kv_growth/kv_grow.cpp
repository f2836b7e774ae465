// Reallocates the key-value cache every n tokens instead of at each step.
#include <algorithm>

#include "base/round_up.h"
#include "engine/layers/kv_cache.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

/// The smallest value that the study calls useful: one slow step in eight.
constexpr std::int64_t kDefaultTokens = 8;
constexpr std::int64_t kMostTokens = 1 << 20;

void apply(EnginePlan& plan, const Parameters& parameters) {
  const std::int64_t tokens = parameters.integer("tokens");
  plan.kv_growth.bind("kv-grow", [tokens](const KvCacheOptions& options) {
    return make_growing_cache(options, [tokens](std::int64_t needed) { return rounded_up(needed, tokens); });
  });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters& parameters) {
  if (counted.phase != Phase::decode) {
    return {};  // the first append allocates under every rule
  }
  const std::int64_t tokens = parameters.integer("tokens");
  const std::int64_t multiple = std::max<std::int64_t>(1, counted.plan.key_padding.value());
  const auto capacity = [&](std::int64_t keys) { return rounded_up(rounded_up(keys, tokens), multiple); };
  std::int64_t growths = 0;
  std::int64_t slots = capacity(counted.length);
  for (std::int64_t step = 1; step <= counted.steps; ++step) {
    const std::int64_t shown = rounded_up(counted.length + step, multiple);
    if (shown > slots) {
      slots = capacity(shown);
      ++growths;
    }
  }
  const std::int64_t tensors = counted.plan.kv_layout.value() == KvLayout::merged ? 1 : 2;
  return {{"kv_write.allocations", tensors * counted.config.layers * growths}};
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "kv-grow",
    .summary = "The cache is reallocated and copied every n tokens, not at every step.",
    .source = "SantaCoder study (text-generation-inference, bigcode), step 3",
    .parameters = {{.name = "tokens",
                    .default_value = kDefaultTokens,
                    .minimum = 1,
                    .maximum = kMostTokens,
                    .help = "tokens that each growth makes room for"}},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
