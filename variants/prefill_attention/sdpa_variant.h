// What the variants have in common that bind one of libtorch's fused attention kernels to prefill or to decode.
#pragma once

#include <string>

#include "engine/layers/sdpa_attention.h"
#include "variants/registry.h"

namespace decodelab {

struct SdpaVariant {
  std::string name;
  std::string phase;  ///< prefill or decode: the slot.
  SdpaKernel kernel;
  std::string summary;
  std::string source;
};

/// The variant with what holds for every phase of its kernel: the operator that proves it, and where it cannot run.
Variant sdpa_variant(const SdpaVariant& described);

}  // namespace decodelab
