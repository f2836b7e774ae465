// Attaches to the device that the steps run on.
#include "profiles/collect/device_collectors.h"

#include <charconv>

#include "profiles/collect/cupti.h"
#include "profiles/collect/nvml.h"

namespace decodelab {
namespace {

constexpr const char* kOnCpu = "the steps run on the CPU, which launches nothing on a device";

bool is_cpu(const std::string& device) { return device == "cpu"; }

/// Returns n of cuda:n; 0 where none is named.
unsigned index_of(const std::string& device) {
  unsigned index = 0;
  const std::size_t colon = device.find(':');
  if (colon != std::string::npos) {
    std::from_chars(device.data() + colon + 1, device.data() + device.size(), index);
  }
  return index;
}

}  // namespace

DeviceCollectors::DeviceCollectors(const std::string& device) : device_(device) {
  if (is_cpu(device)) {
    reason_ = kOnCpu;
  } else {
    session_ = open_cupti(reason_);
  }
}

DeviceCollectors::~DeviceCollectors() = default;

std::unique_ptr<Collector> DeviceCollectors::nvml() const {
  if (is_cpu(device_)) {
    return std::make_unique<NullCollector>("nvml", kOnCpu);
  }
  return make_nvml_collector(index_of(device_));
}

std::unique_ptr<Collector> DeviceCollectors::cupti() {
  if (session_ == nullptr) {
    return std::make_unique<NullCollector>("cupti", reason_);
  }
  return session_->collector();
}

std::optional<LaunchCounts> DeviceCollectors::launches() const {
  return session_ == nullptr ? std::nullopt : session_->launches();
}

}  // namespace decodelab
