// The CUPTI that tests load: the library beside the headers that the build found.
#pragma once

#include "profiles/collect/cupti_functions.h"

#ifdef DECODELAB_HAS_CUPTI

#include <stdexcept>
#include <string>

#ifndef DECODELAB_CUPTI_LIBRARY
#define DECODELAB_CUPTI_LIBRARY "libcupti.so.13"
#endif

namespace decodelab {

/// Its functions; none of the tests' needs a driver. Throws std::runtime_error where it cannot be loaded: a build with
/// its headers has it.
inline CuptiFunctions cupti_of_tests() {
  std::string reason;
  const CuptiFunctions functions = load_cupti(reason, DECODELAB_CUPTI_LIBRARY);
  if (!reason.empty()) {
    throw std::runtime_error(reason);
  }
  return functions;
}

}  // namespace decodelab

#endif
