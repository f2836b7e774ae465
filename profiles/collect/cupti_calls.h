// Tells what the functions of CUDA's runtime and driver do, by the names that CUPTI gives them.
#pragma once

#include <string>
#include <string_view>

#include "profiles/trace/events.h"

namespace decodelab {

/// Returns "cudaLaunchKernel" for "cudaLaunchKernel_v7000", "cudaLaunchKernel_ptsz_v7000" and CUDA 13's
/// "__cudaLaunchKernel_v13000": the names that tools for traces look for.
std::string plain_call_name(std::string_view callback_name);

/// Returns what a call of that name asks for. Names are those of a documented interface, not those of kernels.
ApiKind call_kind(std::string_view plain_name);

/// Returns whether such a call launches one operation outside of a graph, which Step::launches counts.
inline bool launches_one(ApiKind kind) {
  return kind == ApiKind::launch || kind == ApiKind::copy || kind == ApiKind::set;
}

}  // namespace decodelab
