// Marks between steps on a device that runs ahead of the host. No torch in this header.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace decodelab {

/// Marks on the device's current stream; nobody waits for one until the times are asked for. Made before what it times,
/// since making marks allocates.
class StepEvents {
 public:
  /// Room for the marks of `steps` steps on `device`, a CUDA device.
  StepEvents(const std::string& device, std::int64_t steps);
  ~StepEvents();
  StepEvents(const StepEvents&) = delete;
  StepEvents& operator=(const StepEvents&) = delete;

  /// The first mark is the start of the first step, each other one the end of a step.
  void mark();
  /// Nanoseconds between each two marks, with the half microsecond of the device's clock; waits for the last.
  std::vector<std::int64_t> step_ns() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace decodelab
