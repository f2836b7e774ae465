// Gaps of a GPU whose cause is made on purpose: what the attribution must call them.
#include <functional>
#include <numeric>

#include <unistd.h>

#include "profiles/trace/device_time.h"
#include "tests/variants/device_test.h"
#include "tests/variants/device_work.h"

namespace decodelab {
namespace {

using testing::DeviceStream;
using testing::DeviceWork;
using testing::record;

constexpr std::int64_t kSteps = 8;
constexpr std::int64_t kShortNs = 5'000;

class CudaGaps : public testing::DeviceTest {
 protected:
  /// A trace that can be believed; what it saw goes to the evidence.
  static DeviceWork believed(std::int64_t steps, const std::function<void(std::int64_t)>& work) {
    DeviceWork recorded = record(TraceTier::causes, steps, work);
    EXPECT_TRUE(recorded.attribution.believable) << recorded.attribution.refusal;
    EXPECT_EQ(recorded.attribution.steps.size(), static_cast<std::size_t>(steps));
    std::map<std::string, double> seen = recorded.gaps_ns();
    seen["busy"] = busy_ns(recorded);
    seen["steps"] = static_cast<double>(recorded.attribution.steps_ns);
    seen["command_buffer_full"] = static_cast<double>(full_buffers(recorded));
    evidence(seen);
    return recorded;
  }

  static double busy_ns(const DeviceWork& recorded) {
    return std::accumulate(recorded.attribution.steps.begin(), recorded.attribution.steps.end(), 0.0,
                           [](double sum, const StepAccount& step) { return sum + static_cast<double>(step.busy_ns); });
  }

  static std::int64_t full_buffers(const DeviceWork& recorded) {
    return std::ranges::count(recorded.trace.events().overheads, OverheadKind::command_buffer_full, &Overhead::kind);
  }

  static double share(const DeviceWork& recorded, double part_ns) {
    return part_ns / static_cast<double>(recorded.attribution.steps_ns);
  }

  static void compute_on_host(std::int64_t ns) {
    const std::int64_t end = trace_clock_ns() + ns;
    while (trace_clock_ns() < end) {
    }
  }
};

TEST_F(CudaGaps, AHostThatSleepsIsDispatch) {
  constexpr std::int64_t kKernels = 20;
  constexpr useconds_t kSleepUs = 500;
  DeviceStream stream(1);
  const DeviceWork recorded = believed(kSteps, [&](std::int64_t) {
    for (std::int64_t kernel = 0; kernel < kKernels; ++kernel) {
      usleep(kSleepUs);
      stream.spin(kShortNs, 0);
    }
  });
  // All sleeps of a step but the first, which is its edge, lie between two kernels.
  EXPECT_EQ(recorded.attribution.bound_by, "dispatch");
  const double asleep = 1e3 * kSleepUs * static_cast<double>((kKernels - 1) * kSteps);
  EXPECT_GE(recorded.gaps_ns()["dispatch"], 0.95 * asleep);
  EXPECT_GT(share(recorded, recorded.gaps_ns()["dispatch"]), 0.8);
}

TEST_F(CudaGaps, AReadBackOfEachTokenIsSync) {
  constexpr std::int64_t kTokens = 50;
  constexpr std::int64_t kTokenBytes = 8;
  DeviceStream stream(1);
  for (const std::int64_t host_ns : {0, 50'000}) {
    const DeviceWork recorded = believed(kSteps, [&](std::int64_t) {
      for (std::int64_t token = 0; token < kTokens; ++token) {
        stream.spin(kShortNs, 0);
        stream.copy_to_host(kTokenBytes);
        stream.wait();
        compute_on_host(host_ns);
      }
    });
    std::map<std::string, double> gaps = recorded.gaps_ns();
    const double waited = gaps["sync"] + gaps["host-after-sync"];
    EXPECT_GT(gaps["sync"], 0);
    EXPECT_GT(waited, gaps["dispatch"] + gaps["unknown"]);
    if (host_ns > 0) {
      // What the host does with a token before it launches again is the tax of the read, not of dispatching.
      EXPECT_EQ(recorded.attribution.bound_by, "host-after-sync");
      EXPECT_GE(gaps["host-after-sync"], 0.95 * static_cast<double>(host_ns * (kTokens - 1) * kSteps));
    }
  }
}

TEST_F(CudaGaps, LongKernelsInAQueueAreKernelsAndFillTheCommandBuffer) {
  constexpr std::int64_t kLongNs = 50'000;
  DeviceStream stream(1);
  const auto queue = [&](std::int64_t kernels) {
    return believed(2, [&stream, kernels](std::int64_t) {
      for (std::int64_t kernel = 0; kernel < kernels; ++kernel) {
        stream.spin(kLongNs, 0);
      }
    });
  };
  // About 1024 launches fit before the host must wait for room.
  const DeviceWork few = queue(400);
  EXPECT_EQ(few.attribution.bound_by, "kernels");
  EXPECT_EQ(full_buffers(few), 0);
  const DeviceWork many = queue(3000);
  EXPECT_EQ(many.attribution.bound_by, "kernels");
  EXPECT_GT(full_buffers(many), 0);
  EXPECT_GT(share(many, busy_ns(many)), 0.9);
  // A wait for a device that is busy costs nothing: it must not be called anything else.
  std::map<std::string, double> gaps = many.gaps_ns();
  EXPECT_LT(share(many, gaps["sync"] + gaps["tool"] + gaps["unknown"]), 0.05);
}

TEST_F(CudaGaps, EmptyKernelsAreLaunchLatency) {
  constexpr std::int64_t kLaunches = 500;
  DeviceStream stream(1);
  const DeviceWork recorded = believed(kSteps, [&](std::int64_t) {
    for (std::int64_t launch = 0; launch < kLaunches; ++launch) {
      stream.empty();
    }
  });
  EXPECT_EQ(recorded.attribution.bound_by, "launch-latency");
}

TEST_F(CudaGaps, TheFloorOfALaunchIsBelowWhatIsCalledLaunching) {
  constexpr std::int64_t kLaunches = 500;
  DeviceStream stream(1);
  const DeviceWork recorded = believed(kSteps, [&](std::int64_t) {
    for (std::int64_t launch = 0; launch < kLaunches; ++launch) {
      stream.empty();
      stream.wait();
    }
  });
  const TraceEvents& events = recorded.trace.events();
  std::vector<std::int64_t> from_call;
  std::vector<std::int64_t> from_return;
  for (const DeviceOperation& operation : events.operations) {
    ASSERT_NE(operation.api_row, kNoRow);
    const ApiCall& call = events.api_calls[static_cast<std::size_t>(operation.api_row)];
    from_call.push_back(operation.start_ns - call.start_ns);
    from_return.push_back(operation.start_ns - call.end_ns);
  }
  ASSERT_EQ(from_call.size(), static_cast<std::size_t>(kLaunches * kSteps));
  std::ranges::sort(from_call);
  std::ranges::sort(from_return);
  const std::int64_t median = from_call[from_call.size() / 2];
  evidence({{"least_ns", static_cast<double>(from_call.front())},
            {"median_ns", static_cast<double>(median)},
            {"median_from_return_ns", static_cast<double>(from_return[from_return.size() / 2])}});
  EXPECT_GT(from_call.front(), 0) << "a kernel starts before it is launched";
  EXPECT_LT(from_return[from_return.size() / 2], kLongestLaunchNs);
}

}  // namespace
}  // namespace decodelab
