// Allocates the key-value cache once for a whole generation, instead of at each step.
#include "base/round_up.h"
#include "engine/layers/kv_cache.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

/// Key lengths that are a multiple of 8 take the aligned 16-bit matrix kernels (the study's step 3).
constexpr std::int64_t kLengthMultiple = 8;
constexpr std::int64_t kMostMultiple = 1 << 20;

void apply(EnginePlan& plan, const Parameters& parameters) {
  const std::int64_t multiple = parameters.integer("multiple");
  plan.kv_growth.bind("kv-preallocated", [multiple](const KvCacheOptions& options) {
    return make_preallocated_cache(options, rounded_up(options.max_tokens, multiple));
  });
}

std::vector<Expectation> expects(const CountedSteps&, const Parameters&) { return {{"kv_write.allocations", 0}}; }

[[maybe_unused]] const bool registered = register_variant({
    .name = "kv-preallocated",
    .summary = "The cache is allocated once, for prompt and completion, rounded up.",
    .source = "SantaCoder study (text-generation-inference, bigcode), step 3",
    .parameters = {{.name = "multiple",
                    .default_value = kLengthMultiple,
                    .minimum = 1,
                    .maximum = kMostMultiple,
                    .help = "tokens that the length is rounded up to"}},
    .expects = expects,
    .unsupported = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
