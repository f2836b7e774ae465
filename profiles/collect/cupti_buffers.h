// The buffers that CUPTI writes records into: allocated before, handed out without a lock being held for long, parsed
// afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace decodelab {

/// NVIDIA's samples use 8 MiB at 8 bytes, which holds 38,000 kernels.
inline constexpr std::size_t kCuptiBufferBytes = std::size_t{8} << 20;

/// A pool of one size. Its functions may be called from any thread.
class CuptiBuffers final {
 public:
  /// Pages are touched when CUPTI writes to them, so that a large pool costs what is used of it.
  explicit CuptiBuffers(std::size_t count, std::size_t bytes = kCuptiBufferBytes);
  CuptiBuffers(const CuptiBuffers&) = delete;
  CuptiBuffers& operator=(const CuptiBuffers&) = delete;

  /// A free buffer; where there is none a buffer whose records will be lost, so that CUPTI never waits and never writes
  /// nowhere.
  std::uint8_t* take();
  std::size_t buffer_bytes() const { return bytes_; }

  /// Whether give() will forget what is in the buffer: take() found the pool empty when it handed it out.
  bool loses(const std::uint8_t* buffer) const;
  /// A buffer is full, or was flushed: keeps it for filled(), or puts it back into the pool where nothing is in it.
  void give(std::uint8_t* buffer, std::size_t valid_bytes);

  struct Filled {
    std::uint8_t* buffer = nullptr;
    std::size_t valid_bytes = 0;
  };
  /// What was kept, in the order in which it came, until reuse() gives it back to the pool.
  std::vector<Filled> filled() const;
  void reuse();

  /// Times that take() found the pool empty since the last reuse().
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
  std::vector<Memory> lost_;  ///< Of refusals.
  std::vector<std::uint8_t*> free_;
  std::vector<std::uint8_t*> free_lost_;
  std::vector<Filled> filled_;
  std::int64_t refused_ = 0;
};

}  // namespace decodelab
