// What only a GPU can say of traces: records, graphs, counts and waits of real devices; the figures that were seen go
// to evidence files.
#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "bench/measure/engine_trace.h"
#include "engine/runtime.h"
#include "engine/tensor.h"
#include "profiles/collect/device_collectors.h"
#include "tests/variants/arms.h"
#include "tests/variants/device_test.h"

namespace decodelab {
namespace {

using testing::small_config;
using testing::small_model;

constexpr const char* kTracedDevice = testing::kGpu;
constexpr std::int64_t kTracedSteps = 8;

class CudaTrace : public testing::DeviceTest {
 protected:
  static ModelConfig config() {
    ModelConfig config = small_config();
    config.hidden_size = 64;  // Heads of 16 elements: libtorch's fused kernels want a multiple of 8.
    config.head_dim = 16;
    config.intermediate_size = 128;
    return config;
  }

  static TracedCell traced(const char* arm, TraceTier tier, std::int64_t pairs = 0) {
    const auto model = small_model(config(), ElementType::bfloat16, kTracedDevice);
    const Engine engine(model, bind_arm(parse_arm(arm), reference_plan()));
    const CellRecord cell{
        .phase = Phase::decode, .batch = 2, .length = 8, .dtype = "bf16", .device = kTracedDevice, .threads = 1};
    return trace_cell(engine, parse_arm(arm), CellInput{}, cell,
                      {.steps = kTracedSteps, .tier = tier, .pairs = pairs, .measure_bandwidth = false});
  }

  static std::int64_t kernels(const TracedCell& cell) {
    return std::ranges::count(cell.trace.events().operations, DeviceOperationKind::kernel, &DeviceOperation::kind);
  }
};

TEST_F(CudaTrace, EagerStepsAreBelievableInBothTiers) {
  for (const TraceTier tier : {TraceTier::kernels, TraceTier::causes}) {
    const TracedCell cell = traced("bigcode", tier);
    EXPECT_NE(cell.quality.verdict, TraceVerdict::broken) << testing::failures(cell.quality);
    EXPECT_GT(kernels(cell), 0);
    EXPECT_EQ(cell.trace.events().session.dropped_records, 0);
    EXPECT_EQ(cell.trace.events().session.zero_times, 0);
  }
}

TEST_F(CudaTrace, EveryReplayOfAGraphHasItsKernelsUnderOneCorrelation) {
  const TracedCell cell = traced("native,-packed-linear,+cuda-graph", TraceTier::causes);
  const TraceEvents& events = cell.trace.events();
  std::map<std::uint32_t, std::set<std::uint64_t>> nodes;
  std::int64_t placed = 0;
  std::int64_t in_graphs = 0;
  for (const DeviceOperation& operation : events.operations) {
    if (operation.graph_id != 0) {
      ++in_graphs;
      EXPECT_TRUE(nodes[operation.correlation].insert(operation.graph_node_id).second)
          << "a node ran twice in a replay";
      placed += operation.stage != Stage::other ? 1 : 0;
    }
  }
  const auto replays = static_cast<std::int64_t>(nodes.size());
  EXPECT_EQ(replays, kTracedSteps);
  for (const auto& [correlation, ids] : nodes) {
    EXPECT_EQ(ids.size(), nodes.begin()->second.size());
  }
  evidence({{"replays", static_cast<double>(replays)},
            {"kernels_in_graphs", static_cast<double>(in_graphs)},
            {"placed_by_node_map", static_cast<double>(placed)},
            {"nodes", static_cast<double>(events.nodes.size())}});
  EXPECT_GT(in_graphs, 0);
  EXPECT_GT(placed, in_graphs / 2) << "the node map does not say where captured kernels come from";
}

TEST_F(CudaTrace, NoKernelStartsBeforeItsLaunchInFiveSessions) {
  std::int64_t least = INT64_MAX;
  for (int session = 0; session < 5; ++session) {
    const TracedCell cell = traced("bigcode", TraceTier::causes);
    const TraceEvents& events = cell.trace.events();
    for (const DeviceOperation& operation : events.operations) {
      ASSERT_NE(operation.api_row, kNoRow) << "a kernel without its launch";
      const ApiCall& call = events.api_calls[static_cast<std::size_t>(operation.api_row)];
      least = std::min(least, operation.start_ns - call.start_ns);
    }
  }
  evidence({{"least_launch_to_start_ns", static_cast<double>(least)}});
  EXPECT_GT(least, 0);
}

TEST_F(CudaTrace, CountsOfTheEngineAreThoseOfTheRecords) {
  for (const char* arm : {"bigcode", "native,-packed-linear,+cuda-graph"}) {
    const TracedCell cell = traced(arm, TraceTier::causes);
    const TraceEvents& events = cell.trace.events();
    ASSERT_TRUE(events.session.launches_counted) << arm;
    std::int64_t counted = 0;
    for (const Step& step : events.steps) {
      counted += step.launches;
    }
    const auto recorded = std::ranges::count_if(
        events.operations, [](const DeviceOperation& operation) { return operation.graph_id == 0; });
    evidence(
        {{"launches_counted", static_cast<double>(counted)}, {"launches_recorded", static_cast<double>(recorded)}});
    EXPECT_EQ(counted, recorded) << arm;
  }
}

TEST_F(CudaTrace, NamesOfLaunchesAreKnown) {
  const TracedCell cell = traced("bigcode", TraceTier::causes);
  std::map<std::string, double> launches;
  for (const ApiCall& call : cell.trace.events().api_calls) {
    if (call.kind == ApiKind::launch || call.driver) {
      ++launches[cell.trace.text(call.name) + "_" + std::to_string(call.callback_id)];
    }
  }
  evidence(launches);
  EXPECT_FALSE(launches.empty());
}

TEST_F(CudaTrace, PerturbationOfBothTiersIsMeasured) {
  for (const char* arm : {"bigcode", "native,-packed-linear,+cuda-graph"}) {
    for (const TraceTier tier : {TraceTier::kernels, TraceTier::causes}) {
      const Perturbation seen = traced(arm, tier, 10).trace.events().session.perturbation;
      evidence({{"tier", static_cast<double>(tier)}, {"ratio", seen.ratio}, {"low", seen.low}, {"high", seen.high}});
      EXPECT_EQ(seen.pairs, 10);
    }
  }
}

TEST_F(CudaTrace, ASecondSubscriberGivesItsReason) {
  const DeviceCollectors first(kTracedDevice);
  DeviceCollectors second(kTracedDevice);
  const Capability capability = second.cupti()->probe();
  EXPECT_FALSE(capability.available);
  EXPECT_NE(capability.reason.find("39"), std::string::npos) << capability.reason;
}

TEST_F(CudaTrace, TheCollectorLeavesTheDeviceItsMemory) {
  const std::int64_t before = free_device_bytes(kTracedDevice);
  const TracedCell cell = traced("bigcode", TraceTier::causes);
  const std::int64_t taken = before - free_device_bytes(kTracedDevice);
  evidence({{"taken_bytes", static_cast<double>(taken)}});
  constexpr std::int64_t kMostBytes = std::int64_t{512}
                                      << 20;  // 20 buffers of 3 MiB, and the caching allocator's blocks.
  EXPECT_LT(taken, kMostBytes);
}

}  // namespace
}  // namespace decodelab
