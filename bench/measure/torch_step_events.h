// Events between steps on a device that runs asynchronously to the host. No torch in this header.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace decodelab {

/// Records events on the device's current stream, and waits for none of them before step_ns(). Construct it before the
/// steps that it times, since creating events allocates.
class StepEvents {
 public:
  /// Creates the events for `steps` steps on `device`, a CUDA device.
  StepEvents(const std::string& device, std::int64_t steps);
  ~StepEvents();
  StepEvents(const StepEvents&) = delete;
  StepEvents& operator=(const StepEvents&) = delete;

  /// Records the next event: the first call marks the start of the first step, each later one the end of a step.
  void mark();
  /// Waits for the last event and returns the nanoseconds between consecutive events, to the half microsecond of the
  /// device's clock.
  std::vector<std::int64_t> step_ns() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace decodelab
