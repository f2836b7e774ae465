// Listens to libtorch's operator callbacks and allocator reports, and times them.
#include "bench/measure/torch_trace.h"

#include "engine/tensor.h"

#include <algorithm>
#include <stdexcept>

namespace decodelab {
namespace {

/// Allocator reports of the thread that made them; releases are of no interest to a trace.
class AllocationReports final : public c10::MemoryReportingInfoBase {
 public:
  AllocationReports(ThreadSpans& spans, at::DeviceType device) : spans_(spans), device_(device) {}

  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device device) override {
    if (bytes > 0 && device.type() == device_) {
      spans_.allocated(bytes);
    }
  }
  bool memoryProfilingEnabled() const override { return true; }

 private:
  ThreadSpans& spans_;
  at::DeviceType device_;
};

/// libtorch's callbacks take no argument of ours.
struct OperatorTarget {
  ThreadSpans* spans = nullptr;
  std::int64_t depth = 0;
};
thread_local OperatorTarget target;

std::unique_ptr<at::ObserverContext> outer_entered(const at::RecordFunction& function) {
  if (target.depth++ == 0) {
    target.spans->enter_operator(function.name());
  }
  return nullptr;
}

void outer_left(const at::RecordFunction&, at::ObserverContext*) {
  if (--target.depth == 0) {
    target.spans->leave_operator();
  }
}

std::unique_ptr<at::ObserverContext> any_entered(const at::RecordFunction& function) {
  target.spans->enter_operator(function.name());
  return nullptr;
}

void any_left(const at::RecordFunction&, at::ObserverContext*) { target.spans->leave_operator(); }

/// Keeps libtorch's allocator from warning of memory that was there before anybody listened, while it lives: a trace asks for
/// allocations, and never for what is freed.
class QuietAllocator final {
 public:
  QuietAllocator() : before_(FLAGS_caffe2_log_level) { FLAGS_caffe2_log_level = std::max(before_, kErrors); }
  ~QuietAllocator() { FLAGS_caffe2_log_level = before_; }
  QuietAllocator(const QuietAllocator&) = delete;
  QuietAllocator& operator=(const QuietAllocator&) = delete;

 private:
  static constexpr int kErrors = 2;
  int before_;
};

}  // namespace

struct OperatorCollector::Impl {
  QuietAllocator quiet;
  std::shared_ptr<AllocationReports> reports;
  std::unique_ptr<c10::DebugInfoGuard> guard;
  at::CallbackHandle callback{};
};

OperatorCollector::OperatorCollector(SpanCollector& spans, const std::string& device)
    : spans_(spans), device_(device) {}

OperatorCollector::~OperatorCollector() { stop(); }

void OperatorCollector::start(const TraceConfig& config) {
  if (spans_.main_thread() == nullptr) {
    throw std::logic_error("operators are recorded into the ring of spans: start the collector of spans first");
  }
  target = {.spans = spans_.main_thread()};
  const bool outer = config.tier < TraceTier::causes;
  impl_ = std::make_unique<Impl>();
  impl_->reports = std::make_shared<AllocationReports>(*spans_.main_thread(), at::Device(device_).type());
  impl_->callback = at::addThreadLocalCallback(
      at::RecordFunctionCallback(outer ? &outer_entered : &any_entered, outer ? &outer_left : &any_left)
          .scopes({at::RecordScope::FUNCTION}));
  impl_->guard = std::make_unique<c10::DebugInfoGuard>(c10::DebugInfoKind::PROFILER_STATE, impl_->reports);
  started_ = true;
}

void OperatorCollector::stop() {
  if (impl_ != nullptr) {
    at::removeCallback(impl_->callback);
    impl_.reset();
    target = {};
  }
}

void OperatorCollector::drain(TraceEvents& events) {
  events.session.collectors.push_back(
      {.name = name(), .on = started_, .reason = started_ ? "" : "it was never started"});
  started_ = false;
}

}  // namespace decodelab
