// A tool that holds CUPTI before us is named, and takes nothing from it away.
#include <cstdio>

#include <torch/csrc/autograd/profiler_kineto.h>

#include "engine/tensor.h"
#include "tests/variants/device_test.h"
#include "tests/variants/device_work.h"

namespace decodelab {
namespace {

class CudaOtherTools : public testing::DeviceTest {};

// Ends the process: 0 where our collector gives way, with its reason on stderr, and the profiler has its own events all
// the same.
[[noreturn]] void collect_beside_the_profiler() {
  namespace profiler = torch::autograd::profiler;
  using torch::profiler::impl::ActivityType;
  const std::set<ActivityType> activities{ActivityType::CPU, ActivityType::CUDA};
  const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  const at::Tensor ones = at::ones({16, 16}, at::TensorOptions().device(at::kCUDA));
  bool available = true;
  {
    DeviceCollectors devices(testing::kGpu);
    const std::unique_ptr<Collector> cupti = devices.cupti();
    const Capability capability = cupti->probe();
    available = capability.available;
    std::fprintf(stderr, "%s\n", capability.reason.c_str());
  }
  synchronize(testing::kGpu);
  const bool right = at::matmul(ones, ones).sum().item<float>() == 16 * 16 * 16;
  const auto result = profiler::disableProfiler();
  std::fprintf(stderr, "events of the profiler: %zu\n", result->events().size());
  std::_Exit(!available && right && !result->events().empty() ? 0 : 1);
}

TEST_F(CudaOtherTools, APyTorchProfilerThatRanFirstIsNamedAndKeepsItsEvents) {
  // A process of its own: the profiler does not let go of CUPTI before its process ends.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(collect_beside_the_profiler(), ::testing::ExitedWithCode(0), "another tool listens already");
}

}  // namespace
}  // namespace decodelab
