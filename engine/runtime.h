// Process-wide settings of libtorch, and what it can run on. No torch in this header.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace decodelab {

/// Sets the number of threads that every operator may use, for the whole process.
void set_threads(std::int64_t threads);
std::int64_t threads();

/// Binds each of the threads to one of `places`, of which there are as many as threads; does nothing for an empty list.
/// Processes that the calling thread starts later inherit its one core, unless they are told otherwise. Throws
/// std::invalid_argument where a thread cannot be bound.
void place_threads(const std::vector<std::int64_t>& places);

/// Returns the devices that are present: `cpu`, then `cuda:n`.
std::vector<std::string> present_devices();

/// Says whether a device's name is valid and whether the device is present.
struct DeviceCheck {
  bool well_named = false;
  bool present = false;
  std::string message;  ///< One sentence where the name is invalid or the device is missing.
};
DeviceCheck check_device(const std::string& name);

/// Waits until everything issued on `device` is done; returns at once on a CPU.
void synchronize(const std::string& device);

/// Returns the bytes that are free now on a CUDA device. Throws std::invalid_argument for a CPU, whose memory
/// bench/machine reports.
std::int64_t free_device_bytes(const std::string& device);

std::string libtorch_version();
/// Returns the CUDA version that the build was made with; empty in a build without CUDA.
std::string cuda_version();

}  // namespace decodelab
