// The table of presets.
#include "variants/presets.h"

namespace decodelab {

const std::vector<Preset>& presets() {
  static const std::vector<Preset> table{
      {.name = "causal", .summary = "The reference: every slot on its plainest implementation.", .variants = {}},
      {.name = "bigcode",
       .summary = "The study's optimizations 1 to 5: flash prefill, vectorized choice, grown cache, details on "
                  "request, last-token head.",
       .variants = {"details-on-request", "flash-prefill", "kv-grow", "last-token-lm-head", "vectorized-choice"}},
  };
  return table;
}

}  // namespace decodelab
