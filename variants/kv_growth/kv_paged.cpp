// Keeps keys and values in pages that rows may share and that move with no copy.
#include <utility>

#include <fmt/format.h>

#include "engine/layers/kv_cache.h"
#include "variants/attention_limits.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

void apply(EnginePlan& plan, const Parameters&) { plan.kv_growth.bind("kv-paged", make_paged_cache); }

/// Two tensors are written into for each layer of a step, and those that were held already are never copied.
std::vector<Expectation> expects(const CountedSteps& counted, const Parameters&) {
  if (counted.phase != Phase::decode) {
    return {};
  }
  return {{"copied_cache_bytes", 0}, {"cache_writes", 2 * counted.steps * counted.config.layers}};
}

std::string unsupported(const RunsOn& where) {
  if (where.device != "cpu") {
    return "pages are read on a CPU only, so far";
  }
  return plain_attention_unsupported(where.config);
}

std::string conflict(const EnginePlan& plan) {
  if (plan.decode_attention.variant() != "split-kv-decode") {
    return "kv-paged needs an attention that reads pages: add split-kv-decode";
  }
  for (const auto& [slot, variant] : {std::pair(plan.kv_layout.name(), plan.kv_layout.variant()),
                                      std::pair(plan.step_runner.name(), plan.step_runner.variant()),
                                      std::pair(plan.key_padding.name(), plan.key_padding.variant())}) {
    if (!variant.empty()) {
      return fmt::format("kv-paged has a layout of its own, which {} (slot {}) does not know: remove one of the two",
                         variant, slot);
    }
  }
  return plan.fork.variant() == "copied-fork"
             ? "kv-paged shares what rows hold alike, so that copied-fork copies nothing: fork by shared-fork"
             : "";
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "kv-paged",
    .summary = "Keys and values lie in pages of 256 tokens: rows that join, leave and fork copy none of them.",
    .source = "PagedAttention (Kwon et al. 2023, arXiv:2309.06180)",
    .parameters = {},
    .needs = {"split-kv-decode"},
    .expects = expects,
    .unsupported = unsupported,
    .conflict = conflict,
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
