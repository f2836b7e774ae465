// Compiles one source of a kernel for several instruction sets, and runs the best one that this processor has.
#pragma once

#include <utility>

#include "engine/kernels/cpu_isa.h"
#include "engine/kernels/simd.h"

/// Compiler target of kernels of CpuIsa::avx512 and above.
#define DECODELAB_AVX512 "avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512"

namespace decodelab::simd {

/// Run `Body::run(arguments...)` compiled for AVX-512, for AVX2 and for any processor. Body::run and all that it calls
/// must be always_inline.
template <typename Body, typename... Arguments>
[[gnu::target(DECODELAB_AVX512)]] void run_avx512(Arguments... arguments) {
  Body::run(arguments...);
}
template <typename Body, typename... Arguments>
[[gnu::target("avx2,fma")]] void run_avx2(Arguments... arguments) {
  Body::run(arguments...);
}
template <typename Body, typename... Arguments>
void run_portable(Arguments... arguments) {
  Body::run(arguments...);
}

template <typename Body, typename... Arguments>
void run_best(CpuIsa isa, Arguments... arguments) {
#if defined(__x86_64__)
  if (isa >= CpuIsa::avx512) {
    return run_avx512<Body>(arguments...);
  }
  if (isa == CpuIsa::avx2) {
    return run_avx2<Body>(arguments...);
  }
#endif
  run_portable<Body>(arguments...);
}

/// Does what run_best() does for `Body` of the storage type of `dtype`.
template <template <typename> class Body, typename... Arguments>
void run_typed(ElementType dtype, CpuIsa isa, Arguments... arguments) {
  switch (dtype) {
    case ElementType::float32: return run_best<Body<float>>(isa, arguments...);
    case ElementType::bfloat16: return run_best<Body<Bfloat16>>(isa, arguments...);
    case ElementType::float16: return run_best<Body<Half>>(isa, arguments...);
  }
}

}  // namespace decodelab::simd
