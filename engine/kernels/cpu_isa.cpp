// Asks the processor what it has.
#include "engine/kernels/cpu_isa.h"

namespace decodelab {

const char* to_string(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::portable: return "portable";
    case CpuIsa::avx2: return "avx2";
    case CpuIsa::avx512: return "avx512";
    case CpuIsa::avx512_bf16: return "avx512-bf16";
  }
  return "";
}

CpuIsa best_cpu_isa(ElementType dtype) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) {
    return dtype == ElementType::bfloat16 && __builtin_cpu_supports("avx512bf16") ? CpuIsa::avx512_bf16
                                                                                  : CpuIsa::avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return CpuIsa::avx2;
  }
#else
  static_cast<void>(dtype);
#endif
  return CpuIsa::portable;
}

}  // namespace decodelab
