// Runs all collectors of a trace as one: starts, stops and drains them in an order in which none records another.
#pragma once

#include <memory>
#include <vector>

#include "profiles/collect/collector.h"

namespace decodelab {

/// Collectors in the order in which they start; they stop and drain in the reverse order.
class TraceWindow final {
 public:
  explicit TraceWindow(std::vector<std::unique_ptr<Collector>> collectors) : collectors_(std::move(collectors)) {}

  void start(const TraceConfig& config);
  void begin_step(const Step& step);
  void end_step(const Step& step);
  void stop();
  /// Adds the rows and counts of all collectors to `events`, and one CollectorState each, in the order in which they
  /// were started.
  void drain(TraceEvents& events);

 private:
  std::vector<std::unique_ptr<Collector>> collectors_;
};

}  // namespace decodelab
