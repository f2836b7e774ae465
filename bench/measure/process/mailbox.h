// Messages of numbers between two processes, over memory that both see.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/shared_memory.h"

namespace decodelab {

/// Lets two processes, or threads, hand each other one message at a time each way. A message is copied once into the
/// shared memory and once out of it; whoever waits sleeps.
class Mailbox {
 public:
  static constexpr std::int64_t kMostNumbers = std::int64_t{1} << 20;

  /// Makes one. Throws std::runtime_error where there is no memory.
  Mailbox();
  /// Opens the other side of one by its descriptor, which a child has from its parent. Throws std::runtime_error for
  /// any other descriptor.
  explicit Mailbox(int descriptor);
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  /// Returns the descriptor, which children have too.
  int descriptor() const { return memory_.descriptor(); }
  /// Sends a message of at most kMostNumbers numbers; the one before was received.
  void send(std::span<const std::int64_t> message);
  /// Returns the next message, or nothing after `timeout_ms` without one.
  std::optional<std::vector<std::int64_t>> receive(int timeout_ms);

 private:
  struct Shared;

  SharedMemory memory_;
  bool first_side_;
  Shared* shared_;  ///< At the beginning of the memory.
};

}  // namespace decodelab
