// The build of this program as the store records it. No torch in this header.
#pragma once

#include "reports/store/record.h"

namespace decodelab {

/// Commit, compiler, build type, libtorch and CUDA of this program.
BuildRecord this_build();

}  // namespace decodelab
