// Prefill attention in one kernel that never writes the scores out.
#include "variants/prefill_attention/sdpa_variant.h"

namespace decodelab {
namespace {

[[maybe_unused]] const bool registered = register_variant(sdpa_variant(
    {.name = "flash-prefill",
     .phase = Phase::prefill,
     .kernel = SdpaKernel::flash,
     .summary = "Prefill attention in one fused kernel, without the matrix of scores.",
     .source = "Dao 2022 (arXiv:2205.14135); SantaCoder study (text-generation-inference, bigcode), step 1"}));

}  // namespace
}  // namespace decodelab
