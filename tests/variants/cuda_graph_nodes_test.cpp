// Records of graphs that a program captures itself, and whose executable is given new arguments between replays.
#include <set>

#include "tests/variants/device_test.h"
#include "tests/variants/device_work.h"

namespace decodelab {
namespace {

using testing::DeviceWork;
using testing::record;

class CudaGraphNodes : public testing::DeviceTest {};

TEST_F(CudaGraphNodes, KeepTheirPlacesWhenTheExecutableIsUpdated) {
  constexpr std::int64_t kSteps = 6;
  constexpr std::int64_t kUpdatedAt = 3;
  constexpr std::int64_t kShortNs = 2'000;
  constexpr std::int64_t kLongNs = 200'000;
  constexpr std::array kPlaces{Stage::qkv, Stage::attention, Stage::mlp};
  testing::DeviceStream stream(kPlaces.size());
  const auto spins_of = [&](std::int64_t ns) {
    return [&stream, &kPlaces, ns] {
      const LayerRange layer(7);
      for (std::size_t place = 0; place < kPlaces.size(); ++place) {
        in_stage(kPlaces[place], [&] { stream.spin(ns, static_cast<std::int64_t>(place)); });
      }
    };
  };
  std::unique_ptr<testing::DeviceGraph> graph;
  const DeviceWork recorded = record(TraceTier::causes, kSteps, [&](std::int64_t step) {
    if (graph == nullptr) {
      graph = std::make_unique<testing::DeviceGraph>(stream, spins_of(kShortNs));
    }
    if (step == kUpdatedAt) {
      graph->update(spins_of(kLongNs));
    }
    graph->replay();
  });
  EXPECT_NE(recorded.quality.verdict, TraceVerdict::broken) << testing::failures(recorded.quality);
  std::map<Stage, std::int64_t> kernels;
  std::set<std::uint64_t> nodes;
  for (const DeviceOperation& operation : recorded.operations(DeviceOperationKind::kernel)) {
    ASSERT_NE(operation.graph_id, 0U);
    EXPECT_EQ(operation.layer, 7);
    ++kernels[operation.stage];
    nodes.insert(operation.graph_node_id);
    EXPECT_EQ(operation.end_ns - operation.start_ns >= kLongNs, operation.step >= kUpdatedAt) << operation.step;
  }
  evidence({{"nodes", static_cast<double>(nodes.size())}, {"stages", static_cast<double>(kernels.size())}});
  EXPECT_EQ(nodes.size(), kPlaces.size()) << "an update makes no nodes";
  for (const Stage place : kPlaces) {
    EXPECT_EQ(kernels[place], kSteps) << kStageNames[static_cast<std::size_t>(place)];
  }
}

}  // namespace
}  // namespace decodelab
