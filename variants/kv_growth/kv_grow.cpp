// Reallocates the key-value cache every n tokens instead of at each step.
#include "engine/layers/kv_cache.h"
#include "variants/registry.h"

#include <fmt/format.h>

namespace decodelab {
namespace {

/// The least that the study calls useful: one slow step in eight.
constexpr std::int64_t kDefaultTokens = 8;
constexpr std::int64_t kMostTokens = 1 << 20;

std::int64_t rounded_up(std::int64_t length, std::int64_t tokens) { return (length + tokens - 1) / tokens * tokens; }

void apply(EnginePlan& plan, const Parameters& parameters) {
  const std::int64_t tokens = parameters.integer("tokens");
  plan.kv_growth.bind("kv-grow", [tokens](const KvCacheOptions& options) {
    return make_growing_cache(
        options, [tokens](std::int64_t needed, std::int64_t) { return rounded_up(needed, tokens); }, 0);
  });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters& parameters) {
  if (counted.phase != "decode") {
    return {};  // the first append allocates whatever the rule
  }
  const std::int64_t tokens = parameters.integer("tokens");
  const std::int64_t growths =
      (rounded_up(counted.length + counted.steps, tokens) - rounded_up(counted.length, tokens)) / tokens;
  return {{"kv_write.allocations", 2 * counted.config.layers * growths}};
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
