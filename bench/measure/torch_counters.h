// Counts what a step does: operators, tensor allocations, bytes, and the amounts that the engine reports. No torch in
// this header.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "reports/store/record.h"

namespace decodelab {

/// Counts what this thread does while the object lives. Counting slows every operator and allocation down, so such an
/// object is never alive in a timed pass.
///
/// Operators are those that the engine calls, without those that they call in turn. Allocations are those of libtorch's
/// allocators, on a CPU those of the calling thread. Names of the counters: `operators`, `allocations`,
/// `allocated_bytes`, each alone and as `<stage>.<counter>`; `op.<operator>`; and those of Amount. A counter that would
/// be 0 is absent.
class StepCounters {
 public:
  explicit StepCounters(const std::string& device);
  ~StepCounters();
  StepCounters(const StepCounters&) = delete;
  StepCounters& operator=(const StepCounters&) = delete;

  /// Sets all counts to 0, but not the bytes held nor their peak.
  void restart();
  Counters counters() const;
  /// Returns the most bytes held at one time above those held at the start; empty where it cannot be known.
  std::optional<std::int64_t> peak_bytes() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace decodelab
