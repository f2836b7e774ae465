// Allocates the key-value cache once, for every position that the model has.
#include "engine/layers/kv_cache.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

void apply(EnginePlan& plan, const Parameters&) {
  plan.kv_growth.bind(
      "kv-static", [](const KvCacheOptions& options) { return make_preallocated_cache(options, options.positions); });
}

/// Only this rule allocates the bytes of a key and value in every layer for all positions. The session allocates them,
/// which no counted step sees, so that only their absence from the step can be counted.
std::vector<Expectation> expects(const CountedSteps&, const Parameters&) {
  return {{"kv_write.allocations", 0}, {"copied_cache_bytes", 0}};
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "kv-static",
    .summary = "The cache is allocated once, for all positions of the model.",
    .source = "inference_runner of the bigcode fork of transformers; gpt-fast",
    .parameters = {},
    .expects = expects,
    .unsupported = {},
    .conflict = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
