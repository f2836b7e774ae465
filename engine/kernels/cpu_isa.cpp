// Asks the processor which instruction sets it has.
#include "engine/kernels/cpu_isa.h"

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace decodelab {

bool may_use_tiles() {
#if defined(__x86_64__)
  // Linux saves the tile registers of a process only after the process has requested them (arch_prctl(2),
  // ARCH_REQ_XCOMP_PERM; headers before 5.16 lack both names).
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileData = 18;
  static const bool granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
#else
  return false;
#endif
}

namespace {

#if defined(__x86_64__)
CpuIsa best_for_bf16() {
  return __builtin_cpu_supports("amx-bf16") && may_use_tiles() ? CpuIsa::amx_bf16 : CpuIsa::avx512_bf16;
}
#endif

}  // namespace

const char* to_string(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::portable: return "portable";
    case CpuIsa::avx2: return "avx2";
    case CpuIsa::avx512: return "avx512";
    case CpuIsa::avx512_bf16: return "avx512-bf16";
    case CpuIsa::amx_bf16: return "amx-bf16";
  }
  return "";
}

CpuIsa best_cpu_isa(ElementType dtype) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) {
    return dtype == ElementType::bfloat16 && __builtin_cpu_supports("avx512bf16") ? best_for_bf16() : CpuIsa::avx512;
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
