// How much memory tensors take while a step runs. No torch in this header.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace decodelab {

/// Counts the bytes of the tensors that this thread allocates while it lives, on a CPU through libtorch's allocator reports, on CUDA
/// through the caching allocator's statistics. Slows allocation down a little: never alive in a timed pass.
class PeakMemory {
 public:
  explicit PeakMemory(const std::string& device);
  ~PeakMemory();
  PeakMemory(const PeakMemory&) = delete;
  PeakMemory& operator=(const PeakMemory&) = delete;

  /// The most bytes held at one time above those held at the start.
  std::optional<std::int64_t> peak_bytes() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace decodelab
