// Writes ranges to the log as they end.
#include "engine/ranks/rank_ranges.h"

#include <chrono>
#include <utility>

#include <sys/syscall.h>
#include <unistd.h>

namespace decodelab {
namespace {

/// The standard library's steady clock is CLOCK_MONOTONIC.
std::int64_t monotonic_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

RangeRecorder::RangeRecorder(RangeLog& log) : log_(log), before_(std::exchange(range_listener, this)) {
  log_.process = getpid();
  log_.thread = syscall(SYS_gettid);
  log_.dropped = 0;
  log_.count.store(0, std::memory_order_release);
}

RangeRecorder::~RangeRecorder() { range_listener = before_; }

void RangeRecorder::begin(const RankRange& range) {
  if (depth_ < kMostDepth) {
    open_[depth_] = range;
    open_[depth_].start_ns = monotonic_ns();
  }
  ++depth_;
}

void RangeRecorder::end() {
  if (--depth_ >= kMostDepth) {
    ++log_.dropped;
    return;
  }
  RankRange& range = open_[depth_];
  range.end_ns = monotonic_ns();
  const std::size_t count = log_.count.load(std::memory_order_relaxed);
  if (count == RangeLog::kMost) {
    ++log_.dropped;
    return;
  }
  log_.ranges[count] = range;
  log_.count.store(count + 1, std::memory_order_release);
}

void RangeRecorder::enter(Stage stage) { begin({.layer = layer_, .stage = stage}); }

void RangeRecorder::add(Amount amount, std::int64_t value) {
  static_cast<void>(amount);  // The first rank counts for all of them.
  static_cast<void>(value);
}

void RangeRecorder::enter_layer(std::int64_t layer) {
  layer_ = static_cast<std::int32_t>(layer);
  begin({.layer = layer_, .is_layer = true});
}

void RangeRecorder::leave_layer() {
  end();
  layer_ = -1;
}

RankRecord read_log(const RangeLog& log, std::int64_t rank) {
  const std::size_t count = log.count.load(std::memory_order_acquire);
  return {.rank = rank,
          .process = log.process,
          .thread = log.thread,
          .ranges = {log.ranges.begin(), log.ranges.begin() + static_cast<std::ptrdiff_t>(count)},
          .dropped = log.dropped};
}

}  // namespace decodelab
