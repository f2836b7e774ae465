// Checks before an allocation whether enough memory is available: a CPU process that runs out of memory is ended by a
// signal, which it cannot catch.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace decodelab {

/// Returns the bytes that may still be allocated. An empty function turns the check off.
using MemoryAtHand = std::function<std::int64_t()>;

/// Is thrown instead of an allocation that would not fit.
class NotEnoughMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws NotEnoughMemory, naming `what`, where fewer than `bytes` are available. Does nothing where `at_hand` is
/// empty.
void require_memory(std::int64_t bytes, const MemoryAtHand& at_hand, const std::string& what);

}  // namespace decodelab
