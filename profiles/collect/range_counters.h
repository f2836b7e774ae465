// A device's counters of memory traffic over ranges of work, by CUPTI's range profiler. Never beside a trace: counting
// stretches work.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "profiles/range.h"

namespace decodelab {

/// The device, its driver or its owner does not let us count; the text is one sentence.
class CountersRefused final : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct CountedRange {
  std::string name;
  double read_bytes = 0;  ///< From the device's memory, not from its caches.
  double written_bytes = 0;
};

/// Passes that a count of both amounts takes on a chip, as CUPTI names it; no device is asked. Throws
/// std::runtime_error.
std::int64_t passes_to_count(const std::string& chip);

/// Counts ranges that do not nest: those of push() and pop(), and, while it is the listener of a thread, each outermost
/// stage.
///
/// Made, used and destroyed on the thread whose context of CUDA is current, with no session of CUPTI alive. Throws
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
  /// In the order in which they were pushed. Once.
  std::vector<CountedRange> stop();

  /// Ranges are named "3 mlp": their place, and the stage.
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
