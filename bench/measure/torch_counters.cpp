// Listens to libtorch's operator callbacks and allocator reports, and to the engine's ranges.
#include "bench/measure/torch_counters.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "engine/tensor.h"
#include "profiles/range.h"

namespace decodelab {
namespace {

struct StageCounts {
  std::int64_t operators = 0;
  std::int64_t allocations = 0;
  std::int64_t allocated_bytes = 0;
};

/// Receives everything that is counted. Ranges, operators and allocations come from the thread that made the recorder;
/// releases may come from any thread.
class Recorder final : public RangeListener, public c10::MemoryReportingInfoBase {
 public:
  explicit Recorder(at::DeviceType device) : device_(device) {}

  void enter(Stage stage) override { stages_.push_back(stage); }
  void leave() override { stages_.pop_back(); }
  void add(Amount amount, std::int64_t value) override { amounts_[static_cast<std::size_t>(amount)] += value; }

  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device device) override {
    if (device.type() != device_) {
      return;
    }
    if (bytes > 0) {
      ++here().allocations;
      here().allocated_bytes += bytes;
    }
    const std::int64_t held = held_.fetch_add(bytes) + bytes;
    std::int64_t most = peak_.load();
    while (held > most && !peak_.compare_exchange_weak(most, held)) {
    }
  }
  bool memoryProfilingEnabled() const override { return true; }

  void operator_entered(const char* name) {
    if (depth_++ == 0) {
      ++here().operators;
      ++operators_[name];
    }
  }
  void operator_left() { --depth_; }

  void restart() {
    counts_ = {};
    amounts_ = {};
    operators_.clear();
  }

  Counters counters() const {
    Counters counters;
    const auto add = [&](const std::string& name, std::int64_t value) {
      if (value != 0) {
        counters[name] += value;
      }
    };
    for (std::size_t stage = 0; stage < counts_.size(); ++stage) {
      const std::string prefix = std::string(kStageNames[stage]) + ".";
      for (const auto& [name, value] :
           {std::pair{"operators", counts_[stage].operators}, std::pair{"allocations", counts_[stage].allocations},
            std::pair{"allocated_bytes", counts_[stage].allocated_bytes}}) {
        add(name, value);
        add(prefix + name, value);
      }
    }
    for (const auto& [name, count] : operators_) {
      add("op." + name, count);
    }
    for (std::size_t amount = 0; amount < amounts_.size(); ++amount) {
      add(kAmountNames[amount], amounts_[amount]);
    }
    return counters;
  }
  std::int64_t peak_bytes() const { return peak_.load(); }

 private:
  StageCounts& here() { return counts_[static_cast<std::size_t>(stages_.empty() ? Stage::other : stages_.back())]; }

  at::DeviceType device_;
  std::vector<Stage> stages_;
  std::array<StageCounts, kStageNames.size()> counts_{};
  std::array<std::int64_t, kAmountNames.size()> amounts_{};
  std::map<std::string, std::int64_t> operators_;
  std::int64_t depth_ = 0;
  std::atomic<std::int64_t> held_{0};
  std::atomic<std::int64_t> peak_{0};
};

/// The recorder of this thread, a variable since libtorch's callbacks take no argument of ours. It is not
/// range_listener, which may stand for another listener while work is recorded.
thread_local Recorder* recorder_of_thread = nullptr;

Recorder& recorder_of_this_thread() { return *recorder_of_thread; }

std::unique_ptr<at::ObserverContext> operator_entered(const at::RecordFunction& function) {
  recorder_of_this_thread().operator_entered(function.name());
  return nullptr;
}

void operator_left(const at::RecordFunction&, at::ObserverContext*) { recorder_of_this_thread().operator_left(); }

}  // namespace

struct StepCounters::Impl {
  std::shared_ptr<Recorder> recorder;
  std::unique_ptr<c10::DebugInfoGuard> guard;
  at::CallbackHandle callback;
};

StepCounters::StepCounters(const std::string& device)
    : impl_(std::make_unique<Impl>(
          Impl{.recorder = std::make_shared<Recorder>(at::Device(device).type()), .guard = {}, .callback = {}})) {
  impl_->guard = std::make_unique<c10::DebugInfoGuard>(c10::DebugInfoKind::PROFILER_STATE, impl_->recorder);
  range_listener = impl_->recorder.get();
  recorder_of_thread = impl_->recorder.get();
  impl_->callback = at::addThreadLocalCallback(
      at::RecordFunctionCallback(&operator_entered, &operator_left).scopes({at::RecordScope::FUNCTION}));
}

StepCounters::~StepCounters() {
  at::removeCallback(impl_->callback);
  range_listener = nullptr;
  recorder_of_thread = nullptr;
}

void StepCounters::restart() { impl_->recorder->restart(); }
Counters StepCounters::counters() const { return impl_->recorder->counters(); }
std::optional<std::int64_t> StepCounters::peak_bytes() const { return impl_->recorder->peak_bytes(); }

}  // namespace decodelab
