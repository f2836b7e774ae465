// Asks, before memory is taken, whether it is there: on a CPU its end is a signal, which nobody can catch.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace decodelab {

/// Bytes that may still be taken; no function: nobody asks.
using MemoryAtHand = std::function<std::int64_t()>;

/// Something was not made, since it would not fit.
class NotEnoughMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws NotEnoughMemory, naming `what`, where fewer than `bytes` are at hand.
void require_memory(std::int64_t bytes, const MemoryAtHand& at_hand, const std::string& what);

}  // namespace decodelab
