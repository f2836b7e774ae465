// What g++ calls at each access of code that is compiled with -fsanitize=thread,bounds-strict,alignment and linked
// without those libraries.
#include <cstdint>
#include <cstring>
#include <string>

#include "tests/cuda_on_cpu/machine.h"

using decodelab::cuda_on_cpu::AccessKind;
using decodelab::cuda_on_cpu::machine;

namespace {

// As libubsan lays them out (compiler-rt/lib/ubsan/ubsan_value.h): the compiler passes pointers to these.
struct TypeDescriptor {
  std::uint16_t kind;
  std::uint16_t information;  ///< Of an integer: bit 0 is set for a signed one.
  char name[1];
};
struct SourceLocation {
  const char* file;
  std::uint32_t line;
  std::uint32_t column;
};
struct OutOfBounds {
  SourceLocation location;
  const TypeDescriptor* array_type;
  const TypeDescriptor* index_type;
};
struct TypeMismatch {
  SourceLocation location;
  const TypeDescriptor* type;
  std::uint8_t alignment_bits;
  std::uint8_t kind;
};

}  // namespace

#define CUDA_ON_CPU_CODE __builtin_return_address(0)
#define CUDA_ON_CPU_CALLS_OF(bytes)                                             \
  void __tsan_read##bytes(void* address) {                                      \
    machine().check(address, bytes, AccessKind::read, true, CUDA_ON_CPU_CODE);  \
  }                                                                             \
  void __tsan_write##bytes(void* address) {                                     \
    machine().check(address, bytes, AccessKind::write, true, CUDA_ON_CPU_CODE); \
  }

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): the compiler chose the names.

CUDA_ON_CPU_CALLS_OF(1)
CUDA_ON_CPU_CALLS_OF(2)
CUDA_ON_CPU_CALLS_OF(4)
CUDA_ON_CPU_CALLS_OF(8)
CUDA_ON_CPU_CALLS_OF(16)

void __tsan_read_range(void* address, std::size_t bytes) {
  machine().check(address, bytes, AccessKind::read, false, CUDA_ON_CPU_CODE);
}
void __tsan_write_range(void* address, std::size_t bytes) {
  machine().check(address, bytes, AccessKind::write, false, CUDA_ON_CPU_CODE);
}
/// The guard of a static in host code.
std::uint8_t __tsan_atomic8_load(const volatile std::uint8_t* address, int /*order*/) { return *address; }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}

void* cuda_on_cpu_memcpy(void* to, const void* from, std::size_t bytes) {
  machine().check(from, bytes, AccessKind::read, false, CUDA_ON_CPU_CODE);
  machine().check(to, bytes, AccessKind::write, false, CUDA_ON_CPU_CODE);
  return std::memcpy(to, from, bytes);
}
void* cuda_on_cpu_memmove(void* to, const void* from, std::size_t bytes) {
  machine().check(from, bytes, AccessKind::read, false, CUDA_ON_CPU_CODE);
  machine().check(to, bytes, AccessKind::write, false, CUDA_ON_CPU_CODE);
  return std::memmove(to, from, bytes);
}
void* cuda_on_cpu_memset(void* to, int value, std::size_t bytes) {
  machine().check(to, bytes, AccessKind::write, false, CUDA_ON_CPU_CODE);
  return std::memset(to, value, bytes);
}

void __ubsan_handle_out_of_bounds(const OutOfBounds* where, std::uintptr_t index) {
  const bool is_signed = (where->index_type->information & 1) != 0;
  const std::string text = is_signed ? std::to_string(static_cast<std::intptr_t>(index)) : std::to_string(index);
  machine().fault_in_line("index " + text + " is outside of " + where->array_type->name,
                          {where->location.file, static_cast<int>(where->location.line)});
}
void __ubsan_handle_type_mismatch_v1(const TypeMismatch* where, std::uintptr_t address) {
  const std::uintptr_t alignment = std::uintptr_t{1} << where->alignment_bits;
  machine().fault_in_line("misaligned access: " + std::string(where->type->name) + " lies at multiples of " +
                              std::to_string(alignment) + " bytes, and this address is " +
                              std::to_string(address % alignment) + " past one",
                          {where->location.file, static_cast<int>(where->location.line)});
}

// NOLINTEND(readability-identifier-naming)
}  // extern "C"
