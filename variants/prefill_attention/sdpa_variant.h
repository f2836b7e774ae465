// What the variants share that bind one of libtorch's fused attention kernels to prefill or to decode.
#pragma once

#include <string>

#include "base/phase.h"
#include "engine/layers/sdpa_attention.h"
#include "variants/registry.h"

namespace decodelab {

struct SdpaVariant {
  std::string name;
  Phase phase;  ///< Prefill or decode; selects the slot.
  SdpaKernel kernel;
  std::string summary;
  std::string source;
};

/// Returns how often a step of the counted phase calls libtorch's fused attention on a CPU, where the attention of that
/// phase is one of these variants.
std::int64_t fused_attention_calls(const CountedSteps& counted);

/// Returns the variant, with what is the same for both phases of its kernel: the operator that proves it, and where it
/// cannot run.
Variant sdpa_variant(const SdpaVariant& described);

}  // namespace decodelab
