// What the functions of CUDA's runtime and driver are, by the names that CUPTI gives them.
#pragma once

#include <string>
#include <string_view>

#include "profiles/trace/events.h"

namespace decodelab {

/// "cudaLaunchKernel" of "cudaLaunchKernel_v7000", "cudaLaunchKernel_ptsz_v7000" and CUDA 13's
/// "__cudaLaunchKernel_v13000": the names that tools for traces look for.
std::string plain_call_name(std::string_view callback_name);

/// What a call of that name asks for. Names are those of an interface that is documented, not those of kernels.
ApiKind call_kind(std::string_view plain_name);

/// Whether it gives a device something to do by itself: what Step::launches counts.
inline bool launches_one(ApiKind kind) {
  return kind == ApiKind::launch || kind == ApiKind::copy || kind == ApiKind::set;
}

}  // namespace decodelab
