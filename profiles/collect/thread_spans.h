// What one thread records of its ranges, operators and allocations while it is listened to.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>

#include "profiles/collect/span_ring.h"
#include "profiles/range.h"

namespace decodelab {

/// The clock of every trace that is collected here: CLOCK_MONOTONIC in ns, about 20 ns a read.
inline std::int64_t trace_clock_ns() {
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * kNsPerSecond + time.tv_nsec;
}

/// The listener of one thread: times what it is told of and writes it into a ring. Nothing here allocates or locks.
class ThreadSpans final : public RangeListener {
 public:
  /// `next` is told of every range and amount too, and may be null. `step` is the index of the step that runs, kNoStep
  /// between steps: the thread that opens steps writes it, and all threads of a collection read it.
  ThreadSpans(std::size_t capacity, RangeListener* next, std::atomic<std::int32_t>& step);

  void enter(Stage stage) override;
  void leave() override;
  void add(Amount amount, std::int64_t value) override;
  void enter_layer(std::int64_t layer) override;
  void leave_layer() override;
  void enter_step(std::int64_t index) override;
  void leave_step() override;

  /// `name` must live until the ring is drained.
  void enter_operator(const char* name) { open({.name = name, .kind = SpanKind::operator_call}); }
  void leave_operator() { close(); }
  /// Belongs to the innermost open span.
  void allocated(std::int64_t bytes) {
    if (depth_ > 0 && depth_ <= kMostDepth) {
      ++open_[depth_ - 1].allocations;
      open_[depth_ - 1].allocated_bytes += bytes;
    }
  }

  /// Forgets amounts and drops, before another collection with the same ring.
  void restart();

  /// Writes what is still open, with an end of 0, and what came deeper than kMostDepth to the drops. Of the recording
  /// thread.
  void finish();

  std::int32_t layer() const { return layer_; }
  Stage stage() const { return stage_; }
  std::int64_t amount(Amount amount) const { return amounts_[static_cast<std::size_t>(amount)]; }

  SpanRing& ring() { return ring_; }
  std::int64_t thread() const { return thread_; }
  bool of_this_thread() const;
  std::int64_t dropped() const { return ring_.dropped() + too_deep_ - dropped_before_; }

 private:
  /// Steps, layers and stages nest four deep, operators that call operators seldom more than ten.
  static constexpr std::size_t kMostDepth = 64;

  void open(const SpanRecord& span);
  void close();

  SpanRing ring_;
  RangeListener* next_;
  std::atomic<std::int32_t>& step_;
  std::int64_t thread_;
  std::size_t depth_ = 0;
  std::array<SpanRecord, kMostDepth> open_{};
  std::int64_t too_deep_ = 0;
  std::int64_t dropped_before_ = 0;
  std::int32_t layer_ = kNoLayer;
  Stage stage_ = Stage::other;
  std::array<std::int64_t, kAmountNames.size()> amounts_{};
};

}  // namespace decodelab
