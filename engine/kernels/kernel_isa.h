// Compiles one source of a kernel for several instruction sets.
#pragma once

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

}  // namespace decodelab::simd
