// Memory that several processes of one machine see.
#pragma once

#include <cstddef>
#include <string_view>

namespace decodelab {

/// Memory behind a descriptor, which children of the process that made it have too. It has no name: it is gone with the
/// last process that has it, however that ends.
class SharedMemory {
 public:
  /// Makes `bytes` bytes, all of them 0. Throws std::runtime_error where there is no memory.
  explicit SharedMemory(std::size_t bytes);
  /// Opens what another process made, and owns a descriptor of its own then. Throws std::runtime_error, which says that
  /// the descriptor is no `what`, for less than `least` bytes or anything else.
  SharedMemory(int descriptor, std::size_t least, std::string_view what);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  int descriptor() const { return descriptor_; }
  std::byte* data() const { return data_; }  ///< At the beginning of a page.
  std::size_t bytes() const { return bytes_; }

 private:
  void map();

  int descriptor_ = -1;
  std::size_t bytes_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace decodelab
