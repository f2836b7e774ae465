// What this program knows of its own code and data: names of functions and of thread-local variables, constants, lines
// of the source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace decodelab::cuda_on_cpu {

struct Symbol {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  std::string name;  ///< As in the source, without our namespaces and the parameters of functions.
};

/// Read from the program's file, which must have a symbol table.
class ProgramSymbols final {
 public:
  /// Throws std::runtime_error where the file cannot be read or has no symbols.
  ProgramSymbols();

  /// The function that begins at an address. Throws std::runtime_error where there is none.
  std::string function_at(const void* address) const;
  /// The function called `name`, or all that a template of this name was compiled to.
  std::vector<std::string> functions(std::string_view name) const;
  /// The thread-local variable that an address lies in, or close behind; null: none.
  const Symbol* thread_local_near(const void* address) const;
  /// Whether an address lies in data that the program cannot write.
  bool is_constant(const void* address) const;

  /// How far an address of code lies from the program's beginning. Addresses of other libraries become 0.
  std::uint32_t offset_of(const void* code) const;
  /// "file:line" of the call that returns to `offset`; of inlined code " < " and where it was inlined follow.
  const std::string& line_of(std::uint32_t offset) const;

 private:
  struct Segment {
    std::uintptr_t begin;
    std::uintptr_t end;
    bool writable;
  };
  void read_segments();
  void read_symbols();

  std::uintptr_t base_ = 0;               ///< What is added to the addresses in the file.
  std::uintptr_t thread_local_base_ = 0;  ///< Of the thread that made this object; kernels run on no other.
  std::vector<Segment> segments_;
  std::map<std::uintptr_t, std::string> functions_;  ///< By address, names as the linker knows them.
  std::map<std::uintptr_t, Symbol> thread_locals_;
  mutable std::map<std::uint32_t, std::string> lines_;
};

}  // namespace decodelab::cuda_on_cpu
