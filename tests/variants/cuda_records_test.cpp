// Records of a GPU against what is known of the work beforehand: durations, bytes, drops, overlaps, and CUDA's events.
#include <array>
#include <cmath>
#include <ranges>

#include "bench/measure/engine_trace.h"
#include "tests/variants/arms.h"
#include "tests/variants/device_test.h"
#include "tests/variants/device_work.h"

namespace decodelab {
namespace {

using testing::DeviceStream;
using testing::DeviceWork;
using testing::record;
using testing::SpinTime;

class CudaRecords : public testing::DeviceTest {};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.at(values.size() / 2);
}

/// Recorded duration less what the kernel saw between its own first and last instruction; the median of many.
double recorded_over_own_ns(std::int64_t spin_ns, double& own_ns) {
  constexpr std::int64_t kRepeats = 21;
  DeviceStream stream(kRepeats);
  const DeviceWork recorded = record(TraceTier::kernels, 1, [&](std::int64_t) {
    for (std::int64_t repeat = 0; repeat < kRepeats; ++repeat) {
      stream.spin(spin_ns, repeat);
      stream.wait();
    }
  });
  const std::vector<SpinTime> own = stream.times();
  const std::vector<DeviceOperation> kernels = recorded.operations(DeviceOperationKind::kernel);
  EXPECT_EQ(kernels.size(), own.size()) << testing::failures(recorded.quality);
  std::vector<double> over;
  std::vector<double> lengths;
  for (std::size_t index = 0; index < std::min(own.size(), kernels.size()); ++index) {
    const std::int64_t length = own[index].end_ns - own[index].start_ns;
    EXPECT_GE(length, spin_ns);
    lengths.push_back(static_cast<double>(length));
    over.push_back(static_cast<double>(kernels[index].end_ns - kernels[index].start_ns - length));
  }
  own_ns = lengths.empty() ? 0 : median(lengths);
  return over.empty() ? 0 : median(over);
}

TEST_F(CudaRecords, DurationsAreThoseThatKernelsMeasureThemselves) {
  // A record also holds the begin and the end of a kernel, outside of its instructions: what an almost empty spin says.
  constexpr double kToleranceNs = 1000;
  constexpr double kMostAroundNs = 5000;
  const auto tick = static_cast<double>(testing::timer_tick_ns());
  double own = 0;
  const double around = recorded_over_own_ns(1, own);
  evidence({{"timer_tick_ns", tick}, {"around_instructions_ns", around}});
  EXPECT_GT(tick, 0);
  EXPECT_GE(around, -tick) << "a record is shorter than its kernel";
  EXPECT_LT(around, kMostAroundNs);
  for (const std::int64_t spin_ns : {5'000, 50'000, 500'000}) {
    const double over = recorded_over_own_ns(spin_ns, own);
    evidence({{"spin_ns", static_cast<double>(spin_ns)}, {"own_ns", own}, {"recorded_over_own_ns", over}});
    EXPECT_NEAR(over, around, kToleranceNs + tick) << spin_ns;
  }
}

TEST_F(CudaRecords, CopiesAndSetsHaveTheirBytesAndKinds) {
  enum CopyKind : std::int32_t { kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 8 };  // CUPTI's numbers.
  constexpr std::array<std::size_t, 4> kSizes{1, 4097, std::size_t{1} << 20, (std::size_t{64} << 20) + 4};
  DeviceStream stream(1, kSizes.back());
  const DeviceWork recorded = record(TraceTier::causes, 1, [&](std::int64_t) {
    for (const std::size_t bytes : kSizes) {
      stream.copy_to_device(bytes);
      stream.copy_to_host(bytes);
      stream.copy_on_device(bytes);
      stream.set(bytes);
    }
  });
  EXPECT_NE(recorded.quality.verdict, TraceVerdict::broken) << testing::failures(recorded.quality);
  const std::vector<DeviceOperation> copies = recorded.operations(DeviceOperationKind::copy);
  const std::vector<DeviceOperation> sets = recorded.operations(DeviceOperationKind::set);
  ASSERT_EQ(copies.size(), 3 * kSizes.size());
  ASSERT_EQ(sets.size(), kSizes.size());
  double copied = 0;
  for (std::size_t size = 0; size < kSizes.size(); ++size) {
    constexpr std::array kKinds{kHostToDevice, kDeviceToHost, kDeviceToDevice};
    for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
      const DeviceOperation& copy = copies[size * kKinds.size() + kind];
      EXPECT_EQ(copy.copy_kind, kKinds[kind]) << kSizes[size];
      EXPECT_EQ(copy.bytes, static_cast<std::int64_t>(kSizes[size])) << kKinds[kind];
      copied += static_cast<double>(copy.bytes);
    }
    EXPECT_EQ(sets[size].bytes, static_cast<std::int64_t>(kSizes[size]));
  }
  evidence({{"copies", static_cast<double>(copies.size())}, {"copied_bytes", copied}});
}

TEST_F(CudaRecords, RefusedBuffersAreCountedAndBreakTheTrace) {
  // 128 MiB of buffers hold 600,000 kernels; the others find the pool empty.
  constexpr std::int64_t kLaunches = 900'000;
  DeviceStream stream(1);
  const DeviceWork recorded = record(TraceTier::kernels, 1, [&](std::int64_t) {
    for (std::int64_t launch = 0; launch < kLaunches; ++launch) {
      stream.empty();
    }
  });
  const TraceEvents& events = recorded.trace.events();
  const auto kept = static_cast<std::int64_t>(events.operations.size());
  evidence({{"launched", static_cast<double>(kLaunches)},
            {"recorded", static_cast<double>(kept)},
            {"dropped", static_cast<double>(events.session.dropped_records)}});
  EXPECT_GT(events.session.dropped_records, 0);
  EXPECT_EQ(kept + events.session.dropped_records, kLaunches);
  EXPECT_EQ(recorded.quality.verdict, TraceVerdict::broken);
  EXPECT_EQ(testing::check_of(recorded.quality, "I1").status, CheckStatus::failed);
  EXPECT_FALSE(recorded.attribution.believable);
  EXPECT_FALSE(recorded.attribution.refusal.empty());
}

TEST_F(CudaRecords, StreamsThatOverlapAreBelievedAndCountedOnce) {
  constexpr std::int64_t kSpinNs = 500'000;
  constexpr std::int64_t kSlackNs = 10'000;  // Of clocks.
  DeviceStream first(1);
  DeviceStream second(1);
  const DeviceWork recorded = record(TraceTier::causes, 4, [&](std::int64_t) {
    first.spin(kSpinNs, 0);
    second.spin(kSpinNs, 0);
  });
  ASSERT_NE(recorded.quality.verdict, TraceVerdict::broken) << testing::failures(recorded.quality);
  EXPECT_EQ(testing::check_of(recorded.quality, "I5").status, CheckStatus::passed);
  ASSERT_EQ(recorded.attribution.steps.size(), 4U);
  // CUPTI makes a stream wait when it first records it.
  for (const StepAccount& step : recorded.attribution.steps | std::views::drop(1)) {
    evidence({{"busy_ns", static_cast<double>(step.busy_ns)}, {"kernel_ns", static_cast<double>(step.kernel_ns)}});
    EXPECT_GE(step.kernel_ns, 2 * kSpinNs - kSlackNs);
    EXPECT_LT(step.busy_ns, 2 * kSpinNs - kSlackNs) << "kernels of two streams did not overlap";
    EXPECT_LE(step.busy_ns, step.span_ns);
  }
}

TEST_F(CudaRecords, ProgrammaticLaunchesThatOverlapGetLanesAndAWarning) {
  constexpr std::int64_t kSpinNs = 200'000;
  DeviceStream stream(2);
  const DeviceWork recorded = record(TraceTier::causes, 4, [&](std::int64_t) {
    stream.spin(kSpinNs, 0);
    stream.spin_early(kSpinNs, 1);
  });
  ASSERT_NE(recorded.quality.verdict, TraceVerdict::broken) << testing::failures(recorded.quality);
  const auto in_lanes = std::ranges::count_if(recorded.trace.events().operations,
                                              [](const DeviceOperation& operation) { return operation.lane > 0; });
  const std::vector<SpinTime> own = stream.times();
  evidence({{"operations_in_lanes", static_cast<double>(in_lanes)},
            {"own_overlap_ns", static_cast<double>(own[0].end_ns - own[1].start_ns)}});
  // Devices before 9.0 run them one after the other: then the trace must say so too.
  const bool overlapped = own[1].start_ns < own[0].end_ns;
  EXPECT_EQ(overlapped, testing::launches_programmatically());
  EXPECT_EQ(in_lanes > 0, overlapped);
  EXPECT_EQ(testing::check_of(recorded.quality, "I5").status, overlapped ? CheckStatus::warned : CheckStatus::passed);
}

TEST_F(CudaRecords, EventsRecordsAndWallAgreeOverADecodeOf100Steps) {
  constexpr std::int64_t kSteps = 100;
  constexpr double kTolerance = 0.02;
  ModelConfig config = testing::small_config();
  config.positions = 256;
  const Engine engine =
      testing::engine_for("causal", testing::small_model(config, ElementType::float32, testing::kGpu));
  Session session(engine, {.batch_size = 4, .max_tokens = 200, .details = {}});
  session.prefill(testing::ragged_prompts());
  testing::EventTimer events;
  const DeviceWork recorded = record(TraceTier::kernels, kSteps, [&](std::int64_t step) {
    if (step == 0) {
      events.start();
    }
    session.decode();
    if (step == kSteps - 1) {
      events.stop();
    }
  });
  ASSERT_NE(recorded.quality.verdict, TraceVerdict::broken) << testing::failures(recorded.quality);
  const std::vector<Step>& steps = recorded.trace.events().steps;
  ASSERT_EQ(steps.size(), static_cast<std::size_t>(kSteps));
  // Without API calls no operation has a step: the first and the last of the window are those of the decode.
  const std::vector<DeviceOperation>& operations = recorded.trace.events().operations;
  ASSERT_FALSE(operations.empty());
  const std::int64_t first = std::ranges::min(operations, {}, &DeviceOperation::start_ns).start_ns;
  const std::int64_t last = std::ranges::max(operations, {}, &DeviceOperation::end_ns).end_ns;
  const auto wall = static_cast<double>(steps.back().end_ns - steps.front().start_ns);
  const auto records = static_cast<double>(last - first);
  const auto by_events = static_cast<double>(events.elapsed_ns());
  evidence({{"wall_ns", wall}, {"records_ns", records}, {"events_ns", by_events}});
  EXPECT_NEAR(by_events, wall, kTolerance * wall);
  EXPECT_NEAR(records, wall, kTolerance * wall);
  EXPECT_NEAR(records, by_events, kTolerance * by_events);
}

TEST_F(CudaRecords, EventsOverstateAKernelOf3Microseconds) {
  constexpr std::int64_t kSpinNs = 3000;
  constexpr std::int64_t kRepeats = 21;
  std::vector<double> by_events;
  testing::EventTimer events;
  const DeviceWork recorded = record(TraceTier::kernels, kRepeats, [&](std::int64_t) {
    events.start();
    testing::spin_on_default_stream(kSpinNs);
    events.stop();
    by_events.push_back(static_cast<double>(events.elapsed_ns()));
  });
  std::vector<double> by_records;
  for (const DeviceOperation& kernel : recorded.operations(DeviceOperationKind::kernel)) {
    by_records.push_back(static_cast<double>(kernel.end_ns - kernel.start_ns));
  }
  ASSERT_EQ(by_records.size(), static_cast<std::size_t>(kRepeats)) << testing::failures(recorded.quality);
  by_events.erase(by_events.begin());  // Of the step before the window.
  evidence({{"spin_ns", static_cast<double>(kSpinNs)},
            {"events_ns", median(by_events)},
            {"records_ns", median(by_records)},
            {"events_over_records", median(by_events) / median(by_records)}});
  // Events hold the kernel and the way to it: the reason why no kernel is timed by them.
  EXPECT_GT(median(by_events), median(by_records));
}

}  // namespace
}  // namespace decodelab
