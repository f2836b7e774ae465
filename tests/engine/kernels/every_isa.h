// The sets of instructions that a kernel can be tested with here.
#pragma once

#include "engine/kernels/cpu_isa.h"

#include <vector>

namespace decodelab::testing {

/// Best last, without those that matter to products alone.
inline std::vector<CpuIsa> every_isa() {
  std::vector<CpuIsa> all{CpuIsa::portable};
  for (const CpuIsa isa : {CpuIsa::avx2, CpuIsa::avx512}) {
    if (isa <= best_cpu_isa()) {
      all.push_back(isa);
    }
  }
  return all;
}

}  // namespace decodelab::testing
