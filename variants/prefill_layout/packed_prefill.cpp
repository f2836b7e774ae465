// Runs prompts of different lengths through the layers without their padding.
#include "variants/registry.h"

namespace decodelab {
namespace {

void apply(EnginePlan& plan, const Parameters&) { plan.prefill_layout.bind("packed-prefill", PrefillLayout::packed); }

[[maybe_unused]] const bool registered = register_variant({
    .name = "packed-prefill",
    .summary = "Prompts of different lengths go through the layers one after the other, without padding.",
    .source = "SantaCoder study (text-generation-inference, its flash models)",
    .parameters = {},
    // The rows of a measured cell have one length, so that there is no padding to leave out and nothing to prove.
    .expects = {},
    .unsupported = {},
    .conflict = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
