// Decode attention by cuDNN's kernel.
#include "variants/prefill_attention/sdpa_variant.h"

namespace decodelab {
namespace {

[[maybe_unused]] const bool registered = register_variant(
    sdpa_variant({.name = "cudnn-decode",
                  .phase = Phase::decode,
                  .kernel = SdpaKernel::cudnn,
                  .summary = "Decode attention by cuDNN's fused kernel, which plans anew for each number of keys.",
                  .source = "NVIDIA cuDNN's scaled dot product attention"}));

}  // namespace
}  // namespace decodelab
