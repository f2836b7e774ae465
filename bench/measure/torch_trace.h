// Records libtorch's operators and their allocations as spans inside of the engine's. No torch in this header.
#pragma once

#include <memory>
#include <string>

#include "profiles/collect/span_collector.h"

namespace decodelab {

/// Records the operators and allocations of the thread that called start() into the ring buffer of `spans`. Start
/// `spans` before it and stop `spans` after it; `spans` drains what both recorded.
///
/// At TraceTier::kernels operators are those that the engine calls, as in StepCounters; at TraceTier::causes also those
/// that they call in turn. Allocations are those of libtorch's allocator of `device`, and belong to the innermost span
/// that is open.
class OperatorCollector final : public Collector {
 public:
  OperatorCollector(SpanCollector& spans, const std::string& device);
  ~OperatorCollector() override;

  std::string name() const override { return "operators"; }
  Capability probe() override { return {.available = true}; }
  void start(const TraceConfig& config) override;
  void stop() override;
  void drain(TraceEvents& events) override;

 private:
  struct Impl;
  SpanCollector& spans_;
  std::string device_;
  std::unique_ptr<Impl> impl_;  ///< Not null while it records.
  bool started_ = false;
};

}  // namespace decodelab
