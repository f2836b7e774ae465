// The functions behind the words of cuda_on_cpu.h.
#include <cstdlib>

#include "tests/cuda_on_cpu/cuda_on_cpu.h"
#include "tests/cuda_on_cpu/machine.h"

namespace decodelab::cuda_on_cpu {

unsigned lane_index() { return machine().lane(); }

bool sabotaged(const char* name) {
  static const char* const wanted = std::getenv("DECODELAB_SABOTAGE");
  return wanted != nullptr && std::strcmp(wanted, name) == 0;
}

void run_launch(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes, void (*call)(void*),
                void* context) {
  machine().launch(kernel, grid, block, shared_bytes, call, context);
}

void* shared_range(const char* name, std::size_t offset, std::size_t bytes, std::size_t element, const char* file,
                   int line) {
  return machine().shared_range(name, offset, bytes, element, {file, line});
}
void* all_shared(std::size_t element, const char* file, int line) {
  const std::size_t whole = machine().shared_bytes() / element * element;
  return machine().shared_range("dynamic shared memory", 0, whole, element, {file, line});
}

void wait_for_block(const char* file, int line) { machine().block_barrier({file, line}); }
void wait_for_warp(unsigned mask, const char* file, int line) {
  machine().meet(mask, machine().lane(), 0, true, {file, line});
}
std::uint64_t exchange(unsigned mask, unsigned source_lane, std::uint64_t bits, const char* file, int line) {
  return machine().meet(mask, source_lane, bits, false, {file, line}).value;
}
unsigned vote(unsigned mask, bool predicate, const char* file, int line) {
  return machine().meet(mask, machine().lane(), predicate ? 1 : 0, false, {file, line}).votes;
}

void read_atomically(const void* address, void* value, std::size_t bytes) {
  machine().check(address, bytes, AccessKind::atomic, true, __builtin_return_address(0));
  std::memcpy(value, address, bytes);
}
void write_atomically(void* address, const void* value, std::size_t bytes) { std::memcpy(address, value, bytes); }

}  // namespace decodelab::cuda_on_cpu

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int bytes) {
  return attribute == cudaFuncAttributeMaxDynamicSharedMemorySize
             ? decodelab::cuda_on_cpu::machine().allow_shared(kernel, bytes)
             : cudaErrorInvalidValue;
}
