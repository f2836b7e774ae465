// The table of presets.
#include "variants/presets.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "variants/registry.h"

namespace decodelab {
namespace {

std::vector<std::string> native_with(std::vector<std::string> more) {
  std::vector<std::string> variants{"batched-accept",   "cached-trie-masks", "chunked-lm-head",    "concatenate-filter",
                                    "copied-fork",      "copied-prefix",     "details-on-request", "fused-gelu",
                                    "fused-layer-norm", "fused-rotary",      "kv-preallocated",    "packed-linear",
                                    "scan-details",     "split-kv-decode",   "split-kv-verify",    "table-text",
                                    "tile-prefill",     "vectorized-choice", "workspace-forward"};
  std::ranges::move(more, std::back_inserter(variants));
  std::ranges::sort(variants);
  return variants;
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> table{
      {.name = "causal", .summary = "The reference: every slot on its plainest implementation.", .variants = {}},
      {.name = "vector",
       .summary = "The study's optimization 2: rows choose together, and details are computed on request.",
       .variants = {"details-on-request", "vectorized-choice"}},
      {.name = "flash",
       .summary = "The study's flash build: fused attention in prefill and decode, prompts without padding.",
       .variants = {"flash-decode", "flash-prefill", "fused-layer-norm", "packed-prefill", "transposed-linear"}},
      {.name = "bigcode",
       .summary = "The study's optimizations 1 to 5: flash prefill, vectorized choice, grown, padded and merged cache, "
                  "fused softmax, details on request, last-token head.",
       .variants = {"details-on-request", "flash-prefill", "fused-softmax", "kv-grow", "last-token-lm-head",
                    "merged-kv", "padded-keys", "vectorized-choice"}},
      {.name = "bigcode2",
       .summary = "bigcode with fused layer norm and transposed weights.",
       .variants = {"details-on-request", "flash-prefill", "fused-layer-norm", "fused-softmax", "kv-grow",
                    "last-token-lm-head", "merged-kv", "padded-keys", "transposed-linear", "vectorized-choice"}},
      {.name = "bigcode3",
       .summary = "bigcode2 with positions and masks from tables.",
       .variants = {"details-on-request", "flash-prefill", "fused-layer-norm", "fused-softmax", "kv-grow",
                    "last-token-lm-head", "lean-forward", "merged-kv", "padded-keys", "transposed-linear",
                    "vectorized-choice"}},
      {.name = "native",
       .summary = "The fastest valid set: own kernels for products, norms and attention, nothing allocated in a "
                  "decode step.",
       .variants = native_with({})},
      {.name = "speculate",
       .summary = "native, with guesses of what repeats what was said, where they are worth their time.",
       .variants = native_with({"goodput-length", "suffix-automaton"})},
      {.name = "speculate-draft",
       .summary = "native, with guesses of a smaller model (--draft), where they are worth their time.",
       .variants = native_with({"draft-model", "goodput-length"})},
  };
  return table;
}

EnginePlan bind_preset(std::string_view name, EnginePlan plan) {
  const auto preset = std::ranges::find(presets(), name, &Preset::name);
  if (preset == presets().end()) {
    throw std::invalid_argument("there is no preset '" + std::string(name) + "'");
  }
  for (const std::string& variant : preset->variants) {
    const Variant& bound = registered_variants().at(variant);
    bound.apply(plan, complete_parameters(bound, {}));
  }
  return plan;
}

}  // namespace decodelab
