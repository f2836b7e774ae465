// Hides work of this thread from the step counters.
#pragma once

#include <memory>
#include <utility>

#include "engine/tensor.h"
#include "profiles/range.h"

namespace decodelab {

/// While an object lives, no operators, allocations or ranges of this thread are reported. Used for what is made once,
/// in the first step that needs it, and is not part of the work of that step.
class Uncounted {
 public:
  Uncounted() : memory_(c10::DebugInfoKind::PROFILER_STATE, std::make_shared<Silence>()) {}
  ~Uncounted() { range_listener = listener_; }
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;

 private:
  struct Silence final : c10::MemoryReportingInfoBase {
    void reportMemoryUsage(void*, std::int64_t, std::size_t, std::size_t, c10::Device) override {}
    bool memoryProfilingEnabled() const override { return false; }
  };

  at::RecordFunctionGuard operators_{false};
  c10::DebugInfoGuard memory_;
  RangeListener* listener_ = std::exchange(range_listener, nullptr);
};

}  // namespace decodelab
