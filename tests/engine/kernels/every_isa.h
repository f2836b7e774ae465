// The sets of instructions that a kernel can be tested with here.
#pragma once

#include <vector>

#include "engine/kernels/cpu_isa.h"

namespace decodelab::testing {

/// Best last, of kernels that read that type; those of products in bf16 count for bf16 alone.
inline std::vector<CpuIsa> every_isa(ElementType dtype = ElementType::float32) {
  std::vector<CpuIsa> all{CpuIsa::portable};
  for (const CpuIsa isa : {CpuIsa::avx2, CpuIsa::avx512, CpuIsa::avx512_bf16, CpuIsa::amx_bf16}) {
    if (isa <= best_cpu_isa(dtype)) {
      all.push_back(isa);
    }
  }
  return all;
}

}  // namespace decodelab::testing
