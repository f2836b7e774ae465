// Counts a device's memory traffic over ranges of work, with CUPTI's range profiler. Never use it during a trace:
// counting slows work down.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "profiles/range.h"

namespace decodelab {

/// Thrown where the device, its driver or its owner does not let us count; the text is one sentence.
class CountersRefused final : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct CountedRange {
  std::string name;
  double read_bytes = 0;  ///< From the device's memory, not from its caches.
  double written_bytes = 0;
};

/// Returns how many passes it takes to count both amounts on a chip, which is named as CUPTI names it; no device is
/// asked. Throws std::runtime_error.
std::int64_t passes_to_count(const std::string& chip);

/// Counts ranges that do not nest: those between push() and pop(), and, while this is the listener of a thread, each
/// outermost stage.
///
/// Construct, use and destroy it on the thread whose context of CUDA is current, with no session of CUPTI alive. Throws
/// CountersRefused where counting is not allowed, and std::runtime_error where a call of CUPTI fails for another
/// reason.
class RangeCounters final : public RangeListener {
 public:
  explicit RangeCounters(std::int64_t most_ranges);
  ~RangeCounters() override;
  RangeCounters(const RangeCounters&) = delete;
  RangeCounters& operator=(const RangeCounters&) = delete;

  void start();
  void push(const std::string& name);
  void pop();
  /// Stops counting and returns the ranges in the order in which they were pushed. Call it once.
  std::vector<CountedRange> stop();

  /// Pushes a range for an outermost stage. It is named "3 mlp": its place in the order, and the stage.
  void enter(Stage stage) override;
  void leave() override;
  void add(Amount, std::int64_t) override {}

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::int64_t depth_ = 0;
  std::int64_t entered_ = 0;
};

}  // namespace decodelab
