// Collects the engine's spans of every thread that asks to be recorded.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "profiles/collect/collector.h"
#include "profiles/collect/thread_spans.h"

namespace decodelab {

/// Records the thread that starts it, and others while they hold an Attachment. Each thread keeps its spans in a ring
/// until the drain.
class SpanCollector final : public Collector {
 public:
  /// Default number of spans of one thread, which take 14 MiB.
  static constexpr std::int64_t kUsualSpans = 1 << 18;

  /// `spans` is the number of spans for which a ring has room at least, limited to TraceConfig::most_events.
  explicit SpanCollector(std::int64_t spans = kUsualSpans) : spans_(spans) {}
  ~SpanCollector() override;

  std::string name() const override { return "spans"; }
  Capability probe() override { return {.available = true}; }
  /// Becomes the listener of this thread and passes every call on to the listener before it.
  void start(const TraceConfig& config) override;
  void stop() override;
  void drain(TraceEvents& events) override;

  /// Records another thread while it lives. Construct and destroy it on that thread, between start() and stop(); none
  /// may exist at other times.
  class Attachment final {
   public:
    explicit Attachment(SpanCollector& collector);
    ~Attachment();
    Attachment(const Attachment&) = delete;
    Attachment& operator=(const Attachment&) = delete;

   private:
    ThreadSpans* spans_;
    RangeListener* before_ = nullptr;
  };

  /// Returns what records the thread that called start(); null before start() and after drain().
  ThreadSpans* main_thread() { return main_; }

 private:
  ThreadSpans* add_thread(std::unique_ptr<ThreadSpans> spans);
  std::unique_ptr<ThreadSpans> new_thread();

  std::int64_t spans_;
  std::int64_t capacity_ = 0;
  std::atomic<std::int32_t> step_{kNoStep};
  std::mutex mutex_;  ///< Guards threads_; nothing locks it while spans are recorded.
  std::vector<std::unique_ptr<ThreadSpans>> threads_;
  /// What recorded the thread that called start(), kept for the next start: a fresh ring would empty caches.
  std::unique_ptr<ThreadSpans> kept_;
  ThreadSpans* main_ = nullptr;
  RangeListener* before_ = nullptr;  ///< The listener whose place was taken.
  bool recording_ = false;
};

/// Returns what a span is called in files: "step", "layer 3", "attention", or the operator's name.
std::string span_name(const SpanRecord& record);

}  // namespace decodelab
