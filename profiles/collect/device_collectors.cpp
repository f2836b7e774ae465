// Attaches to the device that the steps run on.
#include "profiles/collect/device_collectors.h"

#include "profiles/collect/cupti.h"
#include "profiles/collect/nvml.h"

namespace decodelab {

DeviceCollectors::DeviceCollectors(const std::string& device) : device_(device) {
  if (device == "cpu") {
    reason_ = "the steps run on the CPU, which launches nothing on a device";
  } else { reason_ = "CUPTI todo"; }
}

DeviceCollectors::~DeviceCollectors() = default;

std::unique_ptr<Collector> DeviceCollectors::nvml() const {
  if (device_ == "cpu") {
    return std::make_unique<NullCollector>("nvml", reason_);
  }
  return make_nvml_collector(0);
}

std::unique_ptr<Collector> DeviceCollectors::cupti() { return std::make_unique<NullCollector>("cupti", reason_); }

std::optional<LaunchCounts> DeviceCollectors::launches() const { return std::nullopt; }

}  // namespace decodelab
