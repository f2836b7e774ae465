// Prefill attention by cuDNN's kernel.
#include "variants/prefill_attention/sdpa_variant.h"

namespace decodelab {
namespace {

[[maybe_unused]] const bool registered =
    register_variant(sdpa_variant({.name = "cudnn-prefill",
                                   .phase = Phase::prefill,
                                   .kernel = SdpaKernel::cudnn,
                                   .summary = "Prefill attention by cuDNN's fused kernel, planned once a shape.",
                                   .source = "NVIDIA cuDNN's scaled dot product attention"}));

}  // namespace
}  // namespace decodelab
