// Makes the collectors of one device, and sets up what must exist before anything runs on it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "profiles/collect/collector.h"

namespace decodelab {

class CuptiSession;

/// What the host launched on a device, counted apart from the rows of a trace.
struct LaunchCounts {
  std::int64_t launches = 0;  ///< Kernels, copies and sets that were launched outside of graphs.
  std::int64_t graph_launches = 0;
};

/// Construct it before the first CUDA graph of a session is captured, on the thread that runs the steps, and keep it
/// until the last trace is drained. For a CPU it holds nothing.
class DeviceCollectors final {
 public:
  /// `device` is cpu or cuda:n.
  explicit DeviceCollectors(const std::string& device);
  ~DeviceCollectors();
  DeviceCollectors(const DeviceCollectors&) = delete;
  DeviceCollectors& operator=(const DeviceCollectors&) = delete;

  /// Each makes a collector that must not outlive this; one that cannot run says why.
  std::unique_ptr<Collector> nvml() const;
  std::unique_ptr<Collector> cupti();

  /// Returns what was launched since the collector of cupti() was started; empty where nothing counts.
  std::optional<LaunchCounts> launches() const;

 private:
  std::string device_;
  std::string reason_;  ///< Why there is no session.
  std::unique_ptr<CuptiSession> session_;
};

}  // namespace decodelab
