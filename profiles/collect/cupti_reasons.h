// Says why CUPTI cannot run here, and what to do about it.
#pragma once

#include "profiles/collect/cupti_functions.h"

#ifdef DECODELAB_HAS_CUPTI

#include <string>

namespace decodelab {

/// Returns one sentence for a call that failed. `other` names the tool that holds CUPTI already, and may be empty.
std::string cupti_reason(const CuptiFunctions& functions, const char* call, CUptiResult result,
                         const std::string& other);

}  // namespace decodelab

#endif
