// Puts listeners on threads and turns what they recorded into rows.
#include "profiles/collect/span_collector.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace decodelab {
namespace {

/// Ids of spans' names, looked up once for each operator, layer and stage.
class SpanNames {
 public:
  explicit SpanNames(TraceStrings& strings) : strings_(strings) {}

  StringId id(const SpanRecord& record) {
    const std::pair key{record.name != nullptr ? static_cast<const void*>(record.name) : nullptr,
                        record.name != nullptr ? 0
                                               : (static_cast<std::int64_t>(record.kind) << 40) |
                                                     (static_cast<std::int64_t>(record.stage) << 32) |
                                                     static_cast<std::uint32_t>(record.layer)};
    const auto [found, added] = ids_.try_emplace(key, StringId{0});
    if (added) {
      found->second = strings_.id(span_name(record));
    }
    return found->second;
  }

 private:
  using Key = std::pair<const void*, std::int64_t>;
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return std::hash<const void*>()(key.first) ^ std::hash<std::int64_t>()(key.second);
    }
  };
  TraceStrings& strings_;
  std::unordered_map<Key, StringId, Hash> ids_;
};

}  // namespace

std::string span_name(const SpanRecord& record) {
  if (record.name != nullptr) {
    return record.name;
  }
  switch (record.kind) {
    case SpanKind::step: return "step";
    case SpanKind::layer: return "layer " + std::to_string(record.layer);
    case SpanKind::stage: return kStageNames.at(static_cast<std::size_t>(record.stage));
    case SpanKind::operator_call:
    case SpanKind::other: break;
  }
  return "span";
}

SpanCollector::~SpanCollector() {
  if (recording_) {
    stop();
  }
}

std::unique_ptr<ThreadSpans> SpanCollector::new_thread() {
  return std::make_unique<ThreadSpans>(static_cast<std::size_t>(capacity_), range_listener, step_);
}

ThreadSpans* SpanCollector::add_thread(std::unique_ptr<ThreadSpans> spans) {
  const std::scoped_lock lock(mutex_);
  return threads_.emplace_back(std::move(spans)).get();
}

void SpanCollector::start(const TraceConfig& config) {
  const std::int64_t capacity = std::clamp<std::int64_t>(spans_, 1, std::max<std::int64_t>(config.most_events, 1));
  if (capacity != capacity_ || before_ != range_listener) {
    kept_.reset();
  }
  capacity_ = capacity;
  step_ = kNoStep;
  before_ = range_listener;
  main_ = add_thread(kept_ != nullptr && kept_->of_this_thread() ? std::move(kept_) : new_thread());
  main_->restart();
  range_listener = main_;
  recording_ = true;
}

void SpanCollector::stop() {
  if (recording_) {
    main_->finish();
    range_listener = before_;
    recording_ = false;
  }
}

void SpanCollector::drain(TraceEvents& events) {
  const std::scoped_lock lock(mutex_);
  SpanNames names(events.strings);
  for (const auto& thread : threads_) {
    SpanRecord record;
    while (thread->ring().pop(record)) {
      events.spans.push_back({.start_ns = record.start_ns,
                              .end_ns = record.end_ns,
                              .thread = thread->thread(),
                              .step = record.step,
                              .layer = record.layer,
                              .name = names.id(record),
                              .kind = record.kind,
                              .stage = record.stage,
                              .allocations = record.allocations,
                              .allocated_bytes = record.allocated_bytes});
    }
    events.session.dropped_records += thread->dropped();
  }
  events.session.collectors.push_back({.name = name(), .on = !threads_.empty(), .reason = ""});
  if (threads_.empty()) {
    events.session.collectors.back().reason = "it was never started";
  }
  for (auto& thread : threads_) {
    if (thread.get() == main_) {
      kept_ = std::move(thread);
    }
  }
  threads_.clear();
  main_ = nullptr;
}

SpanCollector::Attachment::Attachment(SpanCollector& collector) : spans_(collector.add_thread(collector.new_thread())) {
  before_ = std::exchange(range_listener, spans_);
}

SpanCollector::Attachment::~Attachment() {
  spans_->finish();
  range_listener = before_;
}

}  // namespace decodelab
