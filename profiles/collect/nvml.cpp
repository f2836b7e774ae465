// Loads NVML at run time and reads it at both ends of a trace.
#include "profiles/collect/nvml.h"

#include <utility>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>

#include "profiles/collect/thread_spans.h"

namespace decodelab {
namespace {

constexpr unsigned kSmClock = 1;      // NVML_CLOCK_SM
constexpr unsigned kMemoryClock = 2;  // NVML_CLOCK_MEM
constexpr unsigned kGpuSensor = 0;    // NVML_TEMPERATURE_GPU
constexpr double kMilliwatts = 1000;

class NvmlCollector final : public Collector {
 public:
  NvmlCollector(unsigned index, const NvmlFunctions& functions, std::string reason)
      : index_(index), nvml_(functions), reason_(std::move(reason)) {
    if (reason_.empty()) {
      if (const int result = nvml_.init(); result != 0) {
        reason_ = "nvmlInit_v2 failed: " + words(result);
      } else {
        open_ = true;
        if (const int found = nvml_.device_by_index(index_, &device_); found != 0) {
          reason_ = "NVML knows no device " + std::to_string(index_) + ": " + words(found);
        }
      }
    }
  }
  ~NvmlCollector() override {
    if (open_) {
      nvml_.shutdown();
    }
  }

  std::string name() const override { return "nvml"; }
  Capability probe() override { return {.available = reason_.empty(), .reason = reason_}; }

  void start(const TraceConfig&) override {
    points_.clear();
    read();
  }
  void stop() override { read(); }

  void drain(TraceEvents& events) override {
    for (const auto& [time_ns, series, value] : points_) {
      events.counters.push_back({.time_ns = time_ns, .series = events.strings.id(series), .value = value});
    }
    events.session.collectors.push_back({.name = name(), .on = reason_.empty(), .reason = reason_});
    points_.clear();
  }

 private:
  struct Point {
    std::int64_t time_ns;
    const char* series;
    double value;
  };

  std::string words(int result) const {
    return nvml_.error_text != nullptr ? nvml_.error_text(result) : "result " + std::to_string(result);
  }

  /// Adds a point for each value that the device reports; other values get none.
  void read() {
    if (!reason_.empty()) {
      return;
    }
    const std::int64_t now = trace_clock_ns();
    unsigned value = 0;
    unsigned long long bits = 0;
    const auto add = [&](int result, const char* series, double amount) {
      if (result == 0) {
        points_.push_back({now, series, amount});
      }
    };
    int result = nvml_.clock(device_, kSmClock, &value);
    add(result, "sm_clock_mhz", value);
    result = nvml_.clock(device_, kMemoryClock, &value);
    add(result, "memory_clock_mhz", value);
    result = nvml_.throttle_reasons(device_, &bits);
    add(result, "throttle_reasons", static_cast<double>(bits));
    result = nvml_.power(device_, &value);
    add(result, "power_w", value / kMilliwatts);
    result = nvml_.temperature(device_, kGpuSensor, &value);
    add(result, "temperature_c", value);
  }

  unsigned index_;
  NvmlFunctions nvml_;
  std::string reason_;
  bool open_ = false;
  NvmlFunctions::Device device_ = nullptr;
  std::vector<Point> points_;
};

template <typename Function>
void look_up_nvml(void* library, const char* name, Function& function, std::string& reason) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr && reason.empty()) {
    reason = fmt::format("libnvidia-ml.so.1 has no {}", name);
  }
}

}  // namespace

NvmlFunctions load_nvml(std::string& reason) {
  NvmlFunctions functions;
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);  // Stays open: it comes with the driver.
  if (library == nullptr) {
    reason = "there is no libnvidia-ml.so.1, which comes with NVIDIA's driver";
    return functions;
  }
  look_up_nvml(library, "nvmlInit_v2", functions.init, reason);
  look_up_nvml(library, "nvmlShutdown", functions.shutdown, reason);
  look_up_nvml(library, "nvmlDeviceGetHandleByIndex_v2", functions.device_by_index, reason);
  look_up_nvml(library, "nvmlDeviceGetClockInfo", functions.clock, reason);
  look_up_nvml(library, "nvmlDeviceGetCurrentClocksThrottleReasons", functions.throttle_reasons, reason);
  look_up_nvml(library, "nvmlDeviceGetPowerUsage", functions.power, reason);
  look_up_nvml(library, "nvmlDeviceGetTemperature", functions.temperature, reason);
  look_up_nvml(library, "nvmlErrorString", functions.error_text, reason);
  return functions;
}

std::unique_ptr<Collector> make_nvml_collector(unsigned device_index) {
  std::string reason;
  const NvmlFunctions functions = load_nvml(reason);
  return make_nvml_collector(device_index, functions, reason);
}

std::unique_ptr<Collector> make_nvml_collector(unsigned device_index, const NvmlFunctions& functions,
                                               const std::string& reason) {
  return std::make_unique<NvmlCollector>(device_index, functions, reason);
}

}  // namespace decodelab
