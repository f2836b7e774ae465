// Many sessions of a GPU's records: launches after idle time, and what is lost where graphs are recorded as a whole.
#include <chrono>
#include <limits>
#include <thread>

#include "bench/measure/engine_trace.h"
#include "profiles/collect/cupti_functions.h"
#include "tests/variants/arms.h"
#include "tests/variants/device_test.h"
#include "tests/variants/device_work.h"

namespace decodelab {
namespace {

using testing::DeviceWork;
using testing::record;

class CudaSessions : public testing::DeviceTest {};

TEST_F(CudaSessions, NoKernelOf10000StartsBeforeItsLaunchAfterIdleTime) {
  constexpr int kSessions = 5;
  constexpr std::int64_t kLaunches = 10'000;
  // As long as in pytorch/pytorch#192021, where records of a session after a pause had garbled stamps.
  constexpr std::chrono::seconds kIdle{15};
  testing::DeviceStream stream(1);
  for (int session = 0; session < kSessions; ++session) {
    if (session > 0) {
      std::this_thread::sleep_for(kIdle);
    }
    const DeviceWork recorded = record(TraceTier::causes, 1, [&](std::int64_t) {
      for (std::int64_t launch = 0; launch < kLaunches; ++launch) {
        stream.empty();
      }
    });
    const TraceEvents& events = recorded.trace.events();
    EXPECT_NE(recorded.quality.verdict, TraceVerdict::broken) << testing::failures(recorded.quality);
    EXPECT_EQ(events.session.zero_times, 0);
    ASSERT_EQ(events.operations.size(), static_cast<std::size_t>(kLaunches));
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const DeviceOperation& operation : events.operations) {
      ASSERT_NE(operation.api_row, kNoRow) << "a kernel without its launch";
      const ApiCall& call = events.api_calls[static_cast<std::size_t>(operation.api_row)];
      least = std::min(least, operation.start_ns - call.start_ns);
    }
    evidence({{"session", session}, {"least_launch_to_start_ns", static_cast<double>(least)}});
    EXPECT_GT(least, 0) << "session " << session;
  }
}

#ifdef DECODELAB_HAS_CUPTI

/// Graphs as whole rows while it lives, as a user of CUPTI may ask for them.
class GraphsAsAWhole final {
 public:
  explicit GraphsAsAWhole(const CuptiFunctions& cupti) : cupti_(cupti) {
    EXPECT_EQ(cupti_.enable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE), CUPTI_SUCCESS);
  }
  ~GraphsAsAWhole() { cupti_.disable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE); }
  GraphsAsAWhole(const GraphsAsAWhole&) = delete;
  GraphsAsAWhole& operator=(const GraphsAsAWhole&) = delete;

 private:
  const CuptiFunctions& cupti_;
};

TEST_F(CudaSessions, GraphsThatAreRecordedAsAWholeLoseTheirKernels) {
  constexpr std::int64_t kSteps = 8;
  std::string reason;
  const CuptiFunctions cupti = load_cupti(reason);
  ASSERT_EQ(reason, "");
  const char* const arm = "native,-packed-linear,+cuda-graph";
  ModelConfig config = testing::small_config();
  config.hidden_size = 64;
  config.head_dim = 16;
  config.intermediate_size = 128;
  const Engine engine = testing::engine_for(arm, testing::small_model(config, ElementType::bfloat16, testing::kGpu));
  const CellRecord cell{
      .phase = Phase::decode, .batch = 2, .length = 8, .dtype = "bf16", .device = testing::kGpu, .threads = 1};
  const auto traced = [&] {
    return trace_cell(
        engine, parse_arm(arm), CellInput{}, cell,
        {.steps = kSteps, .tier = TraceTier::causes, .pairs = std::int64_t{0}, .measure_bandwidth = false});
  };
  const auto in_graphs = [](const TracedCell& traced_cell, DeviceOperationKind kind) {
    return std::ranges::count_if(traced_cell.trace.events().operations, [kind](const DeviceOperation& operation) {
      return operation.graph_id != 0 && operation.kind == kind;
    });
  };
  const auto whole = [&] {
    const GraphsAsAWhole asked(cupti);
    return traced();
  }();
  const TracedCell by_node = traced();
  const auto lost = in_graphs(whole, DeviceOperationKind::kernel);
  const auto kept = in_graphs(by_node, DeviceOperationKind::kernel);
  evidence({{"kernels_by_node", static_cast<double>(kept)},
            {"kernels_as_a_whole", static_cast<double>(lost)},
            {"graph_rows", static_cast<double>(in_graphs(whole, DeviceOperationKind::graph))}});
  // The reason why the collector never asks for it; and the trace must say what it has.
  EXPECT_GT(kept, 0);
  EXPECT_EQ(lost, 0);
  EXPECT_GE(in_graphs(whole, DeviceOperationKind::graph), kSteps);
  EXPECT_TRUE(whole.trace.events().session.graph_granularity);
  EXPECT_FALSE(by_node.trace.events().session.graph_granularity);
}

#endif

}  // namespace
}  // namespace decodelab
