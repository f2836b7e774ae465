// Why CUPTI cannot run here, in words that say what to do.
#pragma once

#include "profiles/collect/cupti_functions.h"

#ifdef DECODELAB_HAS_CUPTI

#include <string>

namespace decodelab {

/// One sentence for a call that failed. `other` names who holds CUPTI already, and may be empty.
std::string cupti_reason(const CuptiFunctions& functions, const char* call, CUptiResult result,
                         const std::string& other);

}  // namespace decodelab

#endif
