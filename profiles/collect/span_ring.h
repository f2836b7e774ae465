// Passes finished spans from the thread that records them to the one that collects them: preallocated, lock-free, with
// a count of dropped spans.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "profiles/trace/events.h"

namespace decodelab {

/// A span as its thread recorded it. Texts are pointers: they are looked up when the ring is drained, not while a step
/// runs.
struct SpanRecord {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;  ///< 0: was still open when its thread stopped recording.
  /// Name of an operator, which must live until the drain. Null: the name follows from kind, stage and layer.
  const char* name = nullptr;
  std::int32_t step = kNoStep;
  std::int32_t layer = kNoLayer;
  SpanKind kind = SpanKind::other;
  Stage stage = Stage::other;
  std::int64_t allocations = 0;
  std::int64_t allocated_bytes = 0;
};

/// A ring with one producer and one consumer, which may be different threads.
class SpanRing final {
 public:
  /// Allocates room for at least `capacity` records and touches it, so that no push causes a page fault.
  explicit SpanRing(std::size_t capacity)
      : records_(std::bit_ceil(std::max<std::size_t>(capacity, 2))), mask_(records_.size() - 1) {}
  SpanRing(const SpanRing&) = delete;
  SpanRing& operator=(const SpanRing&) = delete;

  /// Adds a record; only the producer calls this. A full ring drops the record and counts it.
  void push(const SpanRecord& record) {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (head - seen_tail_ > mask_) {
      seen_tail_ = tail_.load(std::memory_order_acquire);
      if (head - seen_tail_ > mask_) {
        dropped_.fetch_add(1, std::memory_order_relaxed);
        return;
      }
    }
    records_[head & mask_] = record;
    head_.store(head + 1, std::memory_order_release);
  }

  /// Takes the oldest record; only the consumer calls this. Returns false where there is none.
  bool pop(SpanRecord& record) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail == head_.load(std::memory_order_acquire)) {
      return false;
    }
    record = records_[tail & mask_];
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  std::size_t capacity() const { return mask_ + 1; }
  /// Returns how many records found no room since the ring was made.
  std::int64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kCacheLine = 64;  // Members that different threads write lie on different lines.

  std::vector<SpanRecord> records_;
  std::size_t mask_;
  alignas(kCacheLine) std::atomic<std::size_t> head_{0};
  std::size_t seen_tail_ = 0;  // The producer's copy: it reads the consumer's line only when the ring looks full.
  std::atomic<std::int64_t> dropped_{0};
  alignas(kCacheLine) std::atomic<std::size_t> tail_{0};
};

}  // namespace decodelab
