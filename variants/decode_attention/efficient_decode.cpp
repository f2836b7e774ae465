// Decode attention by the memory-efficient kernel.
#include "variants/prefill_attention/sdpa_variant.h"

namespace decodelab {
namespace {

[[maybe_unused]] const bool registered = register_variant(sdpa_variant(
    {.name = "efficient-decode",
     .phase = Phase::decode,
     .kernel = SdpaKernel::efficient,
     .summary = "Decode attention by the memory-efficient kernel; key heads are copied for every query head.",
     .source = "Rabe and Staats 2021 (arXiv:2112.05682); xFormers"}));

}  // namespace
}  // namespace decodelab
