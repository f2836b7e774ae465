// The engine's own statements: slots that refuse a second variant, devices, and closed forms of memory.
#include "engine/engine.h"

#include <limits>

#include <gtest/gtest.h>

#include "engine/checkpoint/weights.h"
#include "engine/layers/prepared_weights.h"
#include "engine/runtime.h"
#include "tests/engine/test_model.h"

namespace decodelab {
namespace {

TEST(Slot, RefusesASecondVariantAndNamesBoth) {
  Slot<int> slot("kv_growth");
  slot.set_reference(1);
  slot.bind("kv-grow", 2);
  try {
    slot.bind("kv-preallocated", 3);
    FAIL() << "a second variant was bound";
  } catch (const std::invalid_argument& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("kv-grow"), std::string::npos);
    EXPECT_NE(message.find("kv-preallocated"), std::string::npos);
    EXPECT_NE(message.find("kv_growth"), std::string::npos);
  }
  EXPECT_EQ(slot.factory(), 2);
}

TEST(ReferencePlan, HasAnImplementationAndNoVariantInEverySlot) {
  const EnginePlan plan = reference_plan();
  EXPECT_TRUE(plan.prefill_attention.factory() && plan.decode_attention.factory() && plan.kv_growth.factory() &&
              plan.lm_head_rows.factory() && plan.token_choice.factory() && plan.rng.factory() &&
              plan.token_details.factory());
  for (const BoundSlot& slot : slots_of(plan)) {
    EXPECT_EQ(slot.variant, "") << slot.slot;
  }
}

TEST(Devices, AreToldApartByNameAndByPresence) {
  EXPECT_TRUE(check_device("cpu").present);
  for (const char* name : {"gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:0x", ""}) {
    EXPECT_FALSE(check_device(name).well_named) << name;
  }
  const DeviceCheck absent = check_device("cuda:63");
  EXPECT_TRUE(absent.well_named);
  EXPECT_FALSE(absent.present);
  EXPECT_NE(absent.message.find("cuda:63"), std::string::npos);
}

TEST(ModelLoad, TakesNoMemoryThatIsNotAtHand) {
  const ModelConfig config = testing::small_config();
  const std::int64_t needed = weight_bytes(config, ElementType::float32);
  const auto load = [&](std::int64_t at_hand) {
    return testing::small_model(config, ElementType::float32, "cpu", [at_hand] { return at_hand; });
  };
  EXPECT_EQ(load(needed)->weight_bytes(), needed);
  try {
    load(needed - 1);
    FAIL() << "more was taken than was at hand";
  } catch (const NotEnoughMemory& error) {
    EXPECT_NE(std::string(error.what()).find("the model's weights"), std::string::npos) << error.what();
  }
}

TEST(ModelOpen, AsksForTheMemoryOfARanksPartAlone) {
  const testing::TemporaryFolder folder;
  testing::write_small_checkpoint(folder.path(), testing::small_config());
  const auto part_with = [&](std::int64_t at_hand) {
    return Model::open(folder.path(), ElementType::float32, "cpu", [at_hand] { return at_hand; })
        ->part({.rank = 1, .ranks = 2});
  };
  const std::int64_t needed = part_with(std::numeric_limits<std::int64_t>::max())->weight_bytes();
  EXPECT_LT(needed, weight_bytes(testing::small_config(), ElementType::float32));
  EXPECT_EQ(part_with(needed)->loading_ns(), 0) << "no weight was read yet";
  EXPECT_THROW(part_with(needed - 1), NotEnoughMemory);
}

TEST(ModelFirstLayers, ShareNoWeightsOfTheLayersAfterThem) {
  const testing::TemporaryFolder folder;
  const ModelConfig config = testing::small_config();
  testing::write_small_checkpoint(folder.path(), config);
  const auto model = Model::open(folder.path(), ElementType::float32, "cpu", [] { return std::int64_t{1} << 40; });
  const auto bytes = [&](std::int64_t layers) {
    return model->first_layers(layers)->part({.rank = 1, .ranks = 2})->weight_bytes();
  };
  ASSERT_GE(config.layers, 2);
  EXPECT_EQ(bytes(config.layers), model->part({.rank = 1, .ranks = 2})->weight_bytes());
  const std::int64_t of_a_layer = bytes(2) - bytes(1);
  EXPECT_GT(of_a_layer, 0);
  EXPECT_EQ(bytes(config.layers) - bytes(1), of_a_layer * (config.layers - 1)) << "layers are alike";
}

TEST(PreparedWeights, AreMadeOnceAndOnlyWhereTheyFit) {
  std::int64_t at_hand = 100;
  PreparedWeights prepared([&] { return at_hand; });
  int made = 0;
  const auto get = [&](const std::string& key) {
    return prepared.prepare<int>(key, 60, [&] { return std::make_unique<int>(++made); });
  };
  const auto first = get("packed a");
  at_hand = 40;
  EXPECT_EQ(get("packed a"), first) << "what is there takes nothing more";
  EXPECT_THROW(get("packed b"), NotEnoughMemory);
  EXPECT_EQ(made, 1);
  at_hand = 60;
  EXPECT_EQ(*get("packed b"), 2);
}

TEST(ModelLoad, HonoursTheActivation) {
  const auto logits = [](Activation activation) {
    const Engine engine(testing::small_model(testing::small_config(true, activation)), reference_plan());
    Session session(engine, {.batch_size = 1, .max_tokens = 4, .details = {}});
    session.prefill(std::vector<std::vector<std::int64_t>>{{1, 2, 3}});
    return session.last_logits();
  };
  const double difference = testing::relative_difference(logits(Activation::gelu_tanh), logits(Activation::gelu_erf));
  EXPECT_GT(difference, 1e-6);
  EXPECT_LT(difference, 1e-2);
}

}  // namespace
}  // namespace decodelab
