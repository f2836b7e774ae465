// Listens to libtorch's operator callbacks and allocator reports, and times them.
#include "bench/measure/torch_trace.h"

#include <memory>
#include <optional>
#include <stdexcept>

#include "engine/tensor.h"

namespace decodelab {
namespace {

/// What libtorch's callbacks record into; a variable of the thread, since the callbacks take no argument of ours.
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

/// Wraps libtorch's allocator of a CPU and reports allocations to `target`. libtorch's own reports cost a lock and a
/// map for each allocation and each release, more than everything else that a trace does. The wrapper lives until the
/// process ends, since storages keep a pointer to the allocator that made them.
class ToldAllocator final : public c10::Allocator {
 public:
  static ToldAllocator& instance() {
    static ToldAllocator allocator(*c10::GetAllocator(c10::DeviceType::CPU));
    return allocator;
  }
  void install() { c10::SetAllocator(c10::DeviceType::CPU, this); }
  void remove() { c10::SetAllocator(c10::DeviceType::CPU, &inner_); }

  c10::DataPtr allocate(std::size_t bytes) override {
    if (target.spans != nullptr && bytes > 0) {
      target.spans->allocated(static_cast<std::int64_t>(bytes));
    }
    return inner_.allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return inner_.raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t count) const override { inner_.copy_data(to, from, count); }

 private:
  explicit ToldAllocator(c10::Allocator& inner) : inner_(inner) {}
  c10::Allocator& inner_;
};

/// Receives the allocator reports of a GPU on the thread that allocates; a trace does not need releases.
class AllocationReports final : public c10::MemoryReportingInfoBase {
 public:
  explicit AllocationReports(at::DeviceType device) : device_(device) {}

  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device device) override {
    if (bytes > 0 && device.type() == device_ && target.spans != nullptr) {
      target.spans->allocated(bytes);
    }
  }
  bool memoryProfilingEnabled() const override { return true; }

 private:
  at::DeviceType device_;
};

/// Reports the allocations on a device while the object lives.
class AllocationsTold final {
 public:
  explicit AllocationsTold(at::DeviceType device) : cpu_(device == at::kCPU) {
    if (cpu_) {
      ToldAllocator::instance().install();
    } else {
      guard_.emplace(c10::DebugInfoKind::PROFILER_STATE, std::make_shared<AllocationReports>(device));
    }
  }
  ~AllocationsTold() {
    if (cpu_) {
      ToldAllocator::instance().remove();
    }
  }
  AllocationsTold(const AllocationsTold&) = delete;
  AllocationsTold& operator=(const AllocationsTold&) = delete;

 private:
  bool cpu_;
  std::optional<c10::DebugInfoGuard> guard_;
};

}  // namespace

struct OperatorCollector::Impl {
  explicit Impl(at::DeviceType device) : allocations(device) {}
  AllocationsTold allocations;
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
  impl_ = std::make_unique<Impl>(at::Device(device_).type());
  impl_->callback = at::addThreadLocalCallback(
      at::RecordFunctionCallback(outer ? &outer_entered : &any_entered, outer ? &outer_left : &any_left)
          .scopes({at::RecordScope::FUNCTION}));
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
