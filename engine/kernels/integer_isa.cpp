// Asks the processor which instructions for products of bytes it has.
#include "engine/kernels/integer_isa.h"

#include "engine/kernels/cpu_isa.h"

namespace decodelab {

const char* to_string(IntegerIsa isa) {
  switch (isa) {
    case IntegerIsa::portable: return "portable";
    case IntegerIsa::avx2: return "avx2";
    case IntegerIsa::avx512_vnni: return "avx512-vnni";
    case IntegerIsa::amx_int8: return "amx-int8";
  }
  return "";
}

IntegerIsa best_integer_isa() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni")) {
    return __builtin_cpu_supports("amx-int8") && may_use_tiles() ? IntegerIsa::amx_int8 : IntegerIsa::avx512_vnni;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) {
    return IntegerIsa::avx2;
  }
#endif
  return IntegerIsa::portable;
}

}  // namespace decodelab
