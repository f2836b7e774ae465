// Process-wide settings of libtorch, and what it can run on. No torch in this header.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace decodelab {

/// Threads that every operator may use. Process-wide.
void set_threads(std::int64_t threads);
std::int64_t threads();

/// Binds each of the threads to one of `places`, which are as many as threads; nothing for none. Processes that the
/// calling thread starts later inherit its one core, unless they are told otherwise. Throws std::invalid_argument where
/// a thread cannot be bound.
void place_threads(const std::vector<std::int64_t>& places);

/// The devices that are present: `cpu`, then `cuda:n`.
std::vector<std::string> present_devices();

/// A device's name and whether it is there.
struct DeviceCheck {
  bool well_named = false;
  bool present = false;
  std::string message;  ///< One sentence where it is not both.
};
DeviceCheck check_device(const std::string& name);

/// Waits until everything issued on `device` is done; returns at once on a CPU.
void synchronize(const std::string& device);

/// Bytes that a CUDA device has free now. Throws std::invalid_argument for a CPU, whose memory bench/machine knows.
std::int64_t free_device_bytes(const std::string& device);

std::string libtorch_version();
/// The CUDA version that the build was made with; empty without.
std::string cuda_version();

}  // namespace decodelab
