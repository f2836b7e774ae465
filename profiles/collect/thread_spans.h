// Records the ranges, operators and allocations of one thread while a collector listens to it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>

#include "profiles/collect/span_ring.h"
#include "profiles/range.h"

namespace decodelab {

/// Reads the clock of every trace that is collected here: CLOCK_MONOTONIC in ns. A read takes about 20 ns.
inline std::int64_t trace_clock_ns() {
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * kNsPerSecond + time.tv_nsec;
}

/// Listens to one thread: times its ranges and operators and writes them into a ring. Nothing here allocates or locks.
class ThreadSpans final : public RangeListener {
 public:
  /// `next` receives every range and amount too, and may be null. `step` is the index of the step that runs, kNoStep
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
  /// Counts an allocation for the innermost open span.
  void allocated(std::int64_t bytes) {
    if (depth_ > 0 && depth_ <= kMostDepth) {
      ++open_[depth_ - 1].allocations;
      open_[depth_ - 1].allocated_bytes += bytes;
    }
  }

  /// Forgets amounts and dropped spans, before another collection with the same ring.
  void restart();

  /// Writes the spans that are still open, with an end of 0, and counts those that were deeper than kMostDepth as
  /// dropped. Only the recording thread may call this.
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
