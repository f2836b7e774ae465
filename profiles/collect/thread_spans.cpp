// Opens and closes the spans of one thread.
#include "profiles/collect/thread_spans.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace decodelab {

ThreadSpans::ThreadSpans(std::size_t capacity, RangeListener* next, std::atomic<std::int32_t>& step)
    : ring_(capacity), next_(next), step_(step), thread_(syscall(SYS_gettid)) {}

void ThreadSpans::restart() {
  dropped_before_ = ring_.dropped() + too_deep_;
  amounts_ = {};
}

bool ThreadSpans::of_this_thread() const { return thread_ == syscall(SYS_gettid); }

void ThreadSpans::open(const SpanRecord& span) {
  if (depth_ < kMostDepth) {
    SpanRecord& record = open_[depth_];
    record = span;
    record.step = step_.load(std::memory_order_relaxed);
    record.layer = layer_;
    if (span.kind != SpanKind::stage) {
      record.stage = stage_;
    }
    record.start_ns = trace_clock_ns();  // Last, so that what comes before it is the parent's time.
  } else {
    ++too_deep_;
  }
  ++depth_;
}

void ThreadSpans::close() {
  const std::int64_t now = trace_clock_ns();
  if (depth_ == 0) {
    return;  // The range began before this listener was set.
  }
  if (--depth_ >= kMostDepth) {
    return;
  }
  SpanRecord& record = open_[depth_];
  record.end_ns = now;
  ring_.push(record);
  // Restores the layer and stage of the span around it.
  layer_ = depth_ > 0 ? open_[depth_ - 1].layer : kNoLayer;
  stage_ = depth_ > 0 ? open_[depth_ - 1].stage : Stage::other;
}

void ThreadSpans::enter(Stage stage) {
  if (next_ != nullptr) {
    next_->enter(stage);
  }
  open({.kind = SpanKind::stage, .stage = stage});
  stage_ = stage;
}

void ThreadSpans::leave() {
  close();
  if (next_ != nullptr) {
    next_->leave();
  }
}

void ThreadSpans::add(Amount amount, std::int64_t value) {
  amounts_[static_cast<std::size_t>(amount)] += value;
  if (next_ != nullptr) {
    next_->add(amount, value);
  }
}

void ThreadSpans::enter_layer(std::int64_t layer) {
  if (next_ != nullptr) {
    next_->enter_layer(layer);
  }
  layer_ = static_cast<std::int32_t>(layer);
  open({.kind = SpanKind::layer});
}

void ThreadSpans::leave_layer() {
  close();
  if (next_ != nullptr) {
    next_->leave_layer();
  }
}

void ThreadSpans::enter_step(std::int64_t index) {
  if (next_ != nullptr) {
    next_->enter_step(index);
  }
  step_.store(static_cast<std::int32_t>(index), std::memory_order_relaxed);
  open({.kind = SpanKind::step});
}

void ThreadSpans::leave_step() {
  close();
  step_.store(kNoStep, std::memory_order_relaxed);
  if (next_ != nullptr) {
    next_->leave_step();
  }
}

void ThreadSpans::finish() {
  while (depth_ > 0) {
    if (--depth_ < kMostDepth) {
      ring_.push(open_[depth_]);
    }
  }
  layer_ = kNoLayer;
  stage_ = Stage::other;
}

}  // namespace decodelab
