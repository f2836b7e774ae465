// Reads the state of an NVIDIA device before and after the steps: its clocks, and whether something throttles it.
#pragma once

#include <memory>

#include "profiles/collect/collector.h"

namespace decodelab {

/// The functions of NVML that are used, by their names in nvml.h, as that header declares them.
struct NvmlFunctions {
  using Result = int;  ///< 0: success.
  using Device = void*;
  Result (*init)() = nullptr;
  Result (*shutdown)() = nullptr;
  Result (*device_by_index)(unsigned index, Device* device) = nullptr;
  Result (*clock)(Device device, unsigned kind, unsigned* mhz) = nullptr;
  Result (*throttle_reasons)(Device device, unsigned long long* reasons) = nullptr;
  Result (*power)(Device device, unsigned* milliwatts) = nullptr;
  Result (*temperature)(Device device, unsigned sensor, unsigned* celsius) = nullptr;
  const char* (*error_text)(Result result) = nullptr;
};

/// Returns the functions of libnvidia-ml.so.1, which comes with the driver. Where there are none, the members are null
/// and `reason` says so.
NvmlFunctions load_nvml(std::string& reason);

/// Makes a collector that reads before the first step and after the last, and not between: a read takes some hundred
/// microseconds of the driver. Series: `sm_clock_mhz`, `memory_clock_mhz`, `throttle_reasons` (NVML's bits), `power_w`,
/// `temperature_c`.
std::unique_ptr<Collector> make_nvml_collector(unsigned device_index);
/// Makes the same collector with other functions, for tests.
std::unique_ptr<Collector> make_nvml_collector(unsigned device_index, const NvmlFunctions& functions,
                                               const std::string& reason);

}  // namespace decodelab
