// Holds the buffers that CUPTI writes records into: allocated in advance, handed out under a short lock, and parsed
// afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace decodelab {

/// NVIDIA's samples use buffers of 8 MiB, aligned to 8 bytes; one holds 38,000 kernels.
inline constexpr std::size_t kCuptiBufferBytes = std::size_t{8} << 20;

/// A pool of buffers of one size. Its functions may be called from any thread.
class CuptiBuffers final {
 public:
  /// Allocates the buffers without touching them: CUPTI touches a page when it writes to it, so that a large pool takes
  /// only the memory that is used.
  explicit CuptiBuffers(std::size_t count, std::size_t bytes = kCuptiBufferBytes);
  CuptiBuffers(const CuptiBuffers&) = delete;
  CuptiBuffers& operator=(const CuptiBuffers&) = delete;

  /// Returns a free buffer. Where there is none, returns a buffer whose records will be lost, so that CUPTI never waits
  /// and never writes to null.
  std::uint8_t* take();
  std::size_t buffer_bytes() const { return bytes_; }

  /// Returns whether give() will discard what is in the buffer, because take() found the pool empty when it handed the
  /// buffer out.
  bool loses(const std::uint8_t* buffer) const;
  /// Takes back a buffer that is full or was flushed: keeps it for filled(), or returns it to the pool where it holds
  /// nothing.
  void give(std::uint8_t* buffer, std::size_t valid_bytes);

  struct Filled {
    std::uint8_t* buffer = nullptr;
    std::size_t valid_bytes = 0;
  };
  /// Returns the buffers that give() kept, in the order in which they came. They are valid until reuse() returns them
  /// to the pool.
  std::vector<Filled> filled() const;
  void reuse();

  /// Returns how often take() found the pool empty since the last reuse().
  std::int64_t refused() const;

 private:
  struct Free {
    void operator()(std::uint8_t* memory) const;
  };
  using Memory = std::unique_ptr<std::uint8_t[], Free>;
  static Memory allocate(std::size_t bytes);

  mutable std::mutex mutex_;
  std::size_t bytes_;
  std::vector<Memory> memory_;
  std::vector<Memory> lost_;  ///< Buffers handed out while the pool was empty.
  std::vector<std::uint8_t*> free_;
  std::vector<std::uint8_t*> free_lost_;
  std::vector<Filled> filled_;
  std::int64_t refused_ = 0;
};

}  // namespace decodelab
