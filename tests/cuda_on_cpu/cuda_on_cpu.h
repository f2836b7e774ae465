// CUDA's words for g++: included before a .cu file, whose kernels then run on the CPU with every access checked.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_THREAD__)
// Copies of memory are checked too. The names must be given before any header declares these functions.
extern "C" void* memcpy(void* to, const void* from, std::size_t bytes) noexcept __asm__("cuda_on_cpu_memcpy");
extern "C" void* memmove(void* to, const void* from, std::size_t bytes) noexcept __asm__("cuda_on_cpu_memmove");
extern "C" void* memset(void* to, int value, std::size_t bytes) noexcept __asm__("cuda_on_cpu_memset");
#endif

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <cuda_runtime.h>

// Qualifiers. One thread of the program runs all kernels, so that its thread-local variables are shared memory and
// nothing else. They are kept apart, so that a small step past the end of one is not a step into the next.
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static __thread __attribute__((aligned(512)))

// These do not change while a thread runs, so that the compiler may keep them; thread_numbers.cpp has them. A function
// or a temporary in their place would not do: g++ 12 evaluates `index` in (condition ? a : b)[index] once and uses it
// in both branches. Reads of constants without a constructor are not checked, so that the sizes are uint3 as well.
extern const uint3 threadIdx;
extern const uint3 blockIdx;
extern const uint3 blockDim;
extern const uint3 gridDim;
constexpr int warpSize = 32;

namespace decodelab::cuda_on_cpu {

/// Does not change while a thread runs.
[[gnu::const]] unsigned lane_index();
/// Whether a test has asked for the fault of this name, which the build has put into a copy of a kernel
/// (tests/cuda_on_cpu/sabotages.cmake).
bool sabotaged(const char* name);

void run_launch(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes, void (*call)(void*),
                void* context);
void* shared_range(const char* name, std::size_t offset, std::size_t bytes, std::size_t element, const char* file,
                   int line);
void* all_shared(std::size_t element, const char* file, int line);
void wait_for_block(const char* file, int line);
void wait_for_warp(unsigned mask, const char* file, int line);
/// Returns the bits that `source_lane` brought.
std::uint64_t exchange(unsigned mask, unsigned source_lane, std::uint64_t bits, const char* file, int line);
/// Returns the lanes whose predicates are true.
unsigned vote(unsigned mask, bool predicate, const char* file, int line);
void read_atomically(const void* address, void* value, std::size_t bytes);
void write_atomically(void* address, const void* value, std::size_t bytes);

template <typename T>
T from_lane(unsigned mask, unsigned source_lane, T value, const char* file, int line) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t) && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = exchange(mask, source_lane, bits, file, line);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Replaces what an address holds by change(what it held) and returns the latter.
template <typename T, typename Change>
[[gnu::always_inline]] inline T atomically(T* address, Change change) {
  T held;
  read_atomically(address, &held, sizeof held);
  const T changed = change(held);
  write_atomically(address, &changed, sizeof changed);
  return held;
}

}  // namespace decodelab::cuda_on_cpu

// --- barriers and warps: the last two arguments say where the call stands
// -----------------------------------------------------

#define CUDA_ON_CPU_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(CUDA_ON_CPU_PLACE) { decodelab::cuda_on_cpu::wait_for_block(file, line); }
inline void __syncwarp(unsigned mask = 0xffffffffu, CUDA_ON_CPU_PLACE) {
  decodelab::cuda_on_cpu::wait_for_warp(mask, file, line);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, CUDA_ON_CPU_PLACE) {
  return decodelab::cuda_on_cpu::vote(mask, predicate != 0, file, line);
}
inline int __any_sync(unsigned mask, int predicate, CUDA_ON_CPU_PLACE) {
  return decodelab::cuda_on_cpu::vote(mask, predicate != 0, file, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, CUDA_ON_CPU_PLACE) {
  return decodelab::cuda_on_cpu::vote(mask, predicate == 0, file, line) == 0;
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize, CUDA_ON_CPU_PLACE) {
  const unsigned lane = decodelab::cuda_on_cpu::lane_index();
  const unsigned last = static_cast<unsigned>(width) - 1;
  return decodelab::cuda_on_cpu::from_lane(mask, (lane & ~last) | (static_cast<unsigned>(source) & last), value, file,
                                           line);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = warpSize, CUDA_ON_CPU_PLACE) {
  const unsigned lane = decodelab::cuda_on_cpu::lane_index();
  const unsigned in_group = lane & (static_cast<unsigned>(width) - 1);
  return decodelab::cuda_on_cpu::from_lane(mask, in_group < by ? lane : lane - by, value, file, line);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = warpSize, CUDA_ON_CPU_PLACE) {
  const unsigned lane = decodelab::cuda_on_cpu::lane_index();
  const unsigned in_group = lane & (static_cast<unsigned>(width) - 1);
  const bool inside = in_group + by < static_cast<unsigned>(width);
  return decodelab::cuda_on_cpu::from_lane(mask, inside ? lane + by : lane, value, file, line);
}
/// A lane may read from an earlier group of `width` lanes; from a later one it has its own value.
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = warpSize, CUDA_ON_CPU_PLACE) {
  const unsigned lane = decodelab::cuda_on_cpu::lane_index();
  const unsigned source = lane ^ static_cast<unsigned>(bits);
  const auto group = static_cast<unsigned>(width);
  return decodelab::cuda_on_cpu::from_lane(mask, source / group > lane / group ? lane : source, value, file, line);
}

// Blocks run one after another and threads switch at barriers only, so that memory is always up to date.
inline void __threadfence() {}
inline void __threadfence_block() {}

// --- atomics
// ---------------------------------------------------------------------------------------------------------------------

template <typename T>
[[gnu::always_inline]] inline T atomicAdd(T* address, std::type_identity_t<T> value) {
  return decodelab::cuda_on_cpu::atomically(address, [=](T held) { return static_cast<T>(held + value); });
}
template <typename T>
[[gnu::always_inline]] inline T atomicMax(T* address, std::type_identity_t<T> value) {
  return decodelab::cuda_on_cpu::atomically(address, [=](T held) { return held < value ? value : held; });
}
template <typename T>
[[gnu::always_inline]] inline T atomicMin(T* address, std::type_identity_t<T> value) {
  return decodelab::cuda_on_cpu::atomically(address, [=](T held) { return value < held ? value : held; });
}
template <typename T>
[[gnu::always_inline]] inline T atomicExch(T* address, std::type_identity_t<T> value) {
  return decodelab::cuda_on_cpu::atomically(address, [=](T) { return value; });
}
template <typename T>
[[gnu::always_inline]] inline T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return decodelab::cuda_on_cpu::atomically(address, [=](T held) { return held == expected ? value : held; });
}

// --- arithmetic
// ------------------------------------------------------------------------------------------------------------------

/// As ex2.approx.ftz of the rounded product with log2(e): a result that would be subnormal is zero.
inline float __expf(float x) {
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLeastNormal = 1.17549435e-38f;
  const float power = exp2f(x * kLog2E);
  return power < kLeastNormal ? 0.0f : power;
}
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
template <typename T>
T min(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
T max(T a, T b) {
  return a < b ? b : a;
}

// --- what engine/kernels/launch.cuh has for nvcc
// ---------------------------------------------------------------------------------

namespace decodelab {

/// Runs all blocks before it returns. The arguments lie on the stack of the host, which kernels may not touch; they get
/// copies.
template <typename... Parameters>
[[gnu::no_sanitize("thread")]] void launch_kernel(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                                  std::size_t shared_bytes, cudaStream_t,
                                                  std::type_identity_t<Parameters>... arguments) {
  auto call = [&]() __attribute__((no_sanitize("thread"))) { kernel(arguments...); };
  cuda_on_cpu::run_launch(
      reinterpret_cast<const void*>(kernel), grid, block, shared_bytes,
      [](void* context) __attribute__((no_sanitize("thread"))) { (*static_cast<decltype(call)*>(context))(); }, &call);
}

namespace device {

template <typename T>
T* dynamic_shared(CUDA_ON_CPU_PLACE) {
  return static_cast<T*>(cuda_on_cpu::all_shared(sizeof(T), file, line));
}

class SharedRanges {
 public:
  template <typename T>
  T* take(const char* name, int count, CUDA_ON_CPU_PLACE) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    void* const range = cuda_on_cpu::shared_range(name, taken_, bytes, sizeof(T), file, line);
    taken_ += bytes;
    return static_cast<T*>(range);
  }

 private:
  std::size_t taken_ = 0;
};

}  // namespace device
}  // namespace decodelab
