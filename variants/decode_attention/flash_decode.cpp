// Decode attention by the flash kernel, which the study found good for prefill only.
#include "variants/prefill_attention/sdpa_variant.h"

namespace decodelab {
namespace {

[[maybe_unused]] const bool registered = register_variant(sdpa_variant(
    {.name = "flash-decode",
     .phase = Phase::decode,
     .kernel = SdpaKernel::flash,
     .summary = "Decode attention in one fused kernel, without the matrix of scores.",
     .source = "Dao 2022 (arXiv:2205.14135); SantaCoder study (text-generation-inference, bigcode), step 1"}));

}  // namespace
}  // namespace decodelab
