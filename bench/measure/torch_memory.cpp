// Counts tensor bytes through libtorch's own allocator hooks.
#include "bench/measure/torch_memory.h"

#include "engine/tensor.h"

#include <algorithm>
#include <atomic>

namespace decodelab {
namespace {

/// Receives every allocation and release of the CPU allocator on the threads that carry it.
class CpuReport final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device device) override {
    if (!device.is_cpu()) {
      return;
    }
    const std::int64_t held = held_.fetch_add(bytes) + bytes;
    std::int64_t most = peak_.load();
    while (held > most && !peak_.compare_exchange_weak(most, held)) {
    }
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::int64_t peak() const { return peak_.load(); }

 private:
  std::atomic<std::int64_t> held_{0};
  std::atomic<std::int64_t> peak_{0};
};

}  // namespace

struct PeakMemory::Impl {
  std::shared_ptr<CpuReport> report;
  std::unique_ptr<c10::DebugInfoGuard> guard;
  at::Device device = at::kCPU;
  std::int64_t held_at_start = 0;
};

PeakMemory::PeakMemory(const std::string& device) : impl_(std::make_unique<Impl>()) {
  impl_->device = at::Device(device);
  if (impl_->device.is_cpu()) {
    impl_->report = std::make_shared<CpuReport>();
    impl_->guard = std::make_unique<c10::DebugInfoGuard>(c10::DebugInfoKind::PROFILER_STATE, impl_->report);
    return;
  }
#ifdef DECODELAB_HAS_CUDA
  c10::cuda::CUDACachingAllocator::resetPeakStats(impl_->device.index());
  impl_->held_at_start =
      c10::cuda::CUDACachingAllocator::getDeviceStats(impl_->device.index()).allocated_bytes[0].current;
#endif
}

PeakMemory::~PeakMemory() = default;

std::optional<std::int64_t> PeakMemory::peak_bytes() const {
  if (impl_->report) {
    return impl_->report->peak();
  }
#ifdef DECODELAB_HAS_CUDA
  return c10::cuda::CUDACachingAllocator::getDeviceStats(impl_->device.index()).allocated_bytes[0].peak -
         impl_->held_at_start;
#else
  return std::nullopt;
#endif
}

}  // namespace decodelab
