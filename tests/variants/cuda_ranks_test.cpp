// Ranks that have a GPU each, where there are two.
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "tests/variants/arms.h"
#include "tests/variants/device_test.h"

namespace decodelab {
namespace {

class CudaRanks : public testing::DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped() && present_devices().size() < 3) {
      GTEST_SKIP() << "one CUDA device is present, and NCCL sums between two";
    }
  }
};

std::vector<std::vector<std::int64_t>> said_by(const Engine& engine) {
  std::vector<std::vector<std::int64_t>> said;
  for (const Completion& completion : generate(engine, {.prompts = testing::ragged_prompts(), .max_tokens = 20})) {
    said.push_back(completion.token_ids);
  }
  return said;
}

TEST_F(CudaRanks, SayWhatOneGpuSays) {
  const std::string arm = "causal,+nccl-ranks";
  for (const ModelConfig& config : {testing::small_config(), testing::small_llama_config()}) {
    const auto first = testing::small_model(config, ElementType::float32, testing::kGpu);
    const auto second = testing::small_model(config, ElementType::float32, "cuda:1");
    const Engine engine(first, bind_arm(parse_arm(arm), reference_plan()), {}, testing::ranks_in_threads(arm, second));
    EXPECT_EQ(said_by(engine), said_by(testing::engine_for("causal", first))) << config.family;
  }
}

}  // namespace
}  // namespace decodelab
