// Events of libtorch between the steps of a visit.
#include "bench/measure/torch_step_events.h"

#include <cmath>

#include "engine/tensor.h"

namespace decodelab {

struct StepEvents::Impl {
  at::Device device;
  std::vector<c10::Event> marks;
  std::size_t used = 0;
};

StepEvents::StepEvents(const std::string& device, std::int64_t steps)
    : impl_(std::make_unique<Impl>(Impl{.device = at::Device(device), .marks = {}})) {
  for (std::int64_t mark = 0; mark <= steps; ++mark) {
    impl_->marks.emplace_back(impl_->device.type(), c10::EventFlag::BACKEND_DEFAULT);
  }
}
StepEvents::~StepEvents() = default;

void StepEvents::mark() {
  const c10::impl::VirtualGuardImpl guard(impl_->device.type());
  impl_->marks.at(impl_->used++).record(guard.getStream(impl_->device));
}

std::vector<std::int64_t> StepEvents::step_ns() const {
  std::vector<std::int64_t> times;
  if (impl_->used == 0) {
    return times;
  }
  impl_->marks[impl_->used - 1].synchronize();
  for (std::size_t step = 0; step + 1 < impl_->used; ++step) {
    constexpr double kNsOfAMillisecond = 1e6;
    times.push_back(std::llround(kNsOfAMillisecond * impl_->marks[step].elapsedTime(impl_->marks[step + 1])));
  }
  return times;
}

}  // namespace decodelab
