// Keeps no keys and values: every step computes those of all tokens again.
#include <utility>

#include <fmt/format.h>

#include "engine/layers/plane_cache.h"
#include "engine/layers/step_rows.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

/// Holds one step, for its own attention.
class NoCache final : public PlaneCache {
 public:
  using PlaneCache::PlaneCache;

  bool keeps() const override { return false; }

 protected:
  void store(KvStorage& storage, const at::Tensor& key_value, const StepRows& rows, std::int64_t slots) override {
    storage.reallocate(of_as_many_rows(key_value, rows), slots, 0);
    storage.write(key_value, rows);
  }
  std::int64_t capacity(std::int64_t needed) const override { return needed; }
};

void apply(EnginePlan& plan, const Parameters&) {
  plan.kv_growth.bind("no-cache", [](const KvCacheOptions& options) { return std::make_unique<NoCache>(options); });
}

std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (counted.phase != Phase::decode) {
    return {};
  }
  // Step i is fed the tokens that are held, and those of i steps before it.
  const std::int64_t again = counted.steps * counted.length + counted.steps * (counted.steps - 1) / 2;
  return {{"recomputed_tokens", counted.batch_size * again}};
}

std::string unsupported(const RunsOn& where) {
  return where.config.encoder ? "the decoder of a model with an encoder is fed one token a step" : "";
}

std::string conflict(const EnginePlan& plan) {
  for (const auto& [slot, variant] : {std::pair(plan.prefix_reuse.name(), plan.prefix_reuse.variant()),
                                      std::pair(plan.step_runner.name(), plan.step_runner.variant()),
                                      std::pair(plan.key_padding.name(), plan.key_padding.variant())}) {
    if (!variant.empty()) {
      return fmt::format("no-cache keeps nothing that {} (slot {}) could work on: remove one of the two", variant,
                         slot);
    }
  }
  return "";
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "no-cache",
    .summary = "Nothing is kept between steps: each prefills all tokens again.",
    .source = "Hugging Face transformers, generate(use_cache=False)",
    .parameters = {},
    .expects = expects,
    .unsupported = unsupported,
    .conflict = conflict,
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
