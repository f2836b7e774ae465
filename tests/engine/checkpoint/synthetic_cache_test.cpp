// Tests of the cache of models made from a seed: what is written, that it is once, and that nothing half-made stays.
#include "engine/checkpoint/synthetic_cache.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/checkpoint/element_conversion.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/synthetic.h"
#include "tests/engine/checkpoint/refusal.h"
#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

std::size_t entries_in(const std::filesystem::path& directory) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator()));
}

TEST(SyntheticCache, WritesTheModelThatNameTypeAndSeedStandFor) {
  const testing::TemporaryFolder cache;
  std::int64_t last = -1;
  std::int64_t total = 0;
  const auto directory = materialize_synthetic("synthetic:tiny", ElementType::bfloat16, 5, cache.path() / "new",
                                               [&](std::int64_t done, std::int64_t all) {
                                                 EXPECT_GE(done, last);
                                                 last = done;
                                                 total = all;
                                               });
  EXPECT_EQ(directory, cache.path() / "new" / "synthetic-tiny-bf16-seed5-v1");
  EXPECT_EQ(last, total);
  const ModelConfig config = load_model_config(directory);
  EXPECT_EQ(total, 2 * parameter_count(config));
  EXPECT_EQ(parameter_count(config), parameter_count(*synthetic_config("synthetic:tiny")));

  const SafetensorsReader reader(directory);
  for (const WeightSpec& weight : weight_specs(config)) {
    const StoredTensor& stored = reader.tensors().at(weight.name);
    ASSERT_EQ(stored.shape, weight.shape);
    ASSERT_EQ(stored.element_type(weight.name), ElementType::bfloat16);
    std::vector<float> values(stored.data.size() / 2);
    const auto [mean, half_width] = synthetic_distribution(weight);
    fill_synthetic(values, 5, weight.name, 0, mean, half_width);
    std::vector<std::byte> expected(stored.data.size());
    convert_elements(values, ElementType::bfloat16, expected);
    ASSERT_TRUE(std::ranges::equal(stored.data, expected)) << weight.name;
  }
  EXPECT_EQ(entries_in(cache.path() / "new"), 1u);
}

TEST(SyntheticCache, WritesAModelOnce) {
  const testing::TemporaryFolder cache;
  const auto directory = materialize_synthetic("synthetic:tiny", ElementType::float16, 0, cache.path(), {});
  const auto written = std::filesystem::last_write_time(directory / "model.safetensors");
  bool asked = false;
  EXPECT_EQ(
      materialize_synthetic("synthetic:tiny", ElementType::float16, 0, cache.path(), [&](auto, auto) { asked = true; }),
      directory);
  EXPECT_FALSE(asked);
  EXPECT_EQ(std::filesystem::last_write_time(directory / "model.safetensors"), written);
}

TEST(SyntheticCache, LetsSeveralMakeTheSameModelAtOnce) {
  const testing::TemporaryFolder cache;
  std::vector<std::filesystem::path> results(4);
  {
    std::vector<std::jthread> threads;
    for (auto& result : results) {
      threads.emplace_back(
          [&] { result = materialize_synthetic("synthetic:tiny", ElementType::bfloat16, 1, cache.path(), {}); });
    }
  }
  for (const auto& result : results) {
    EXPECT_EQ(result, results.front());
  }
  EXPECT_EQ(entries_in(cache.path()), 1u);
}

TEST(SyntheticCache, LeavesNothingWhenItIsInterrupted) {
  const testing::TemporaryFolder cache;
  const auto interrupt = [](std::int64_t, std::int64_t) { throw std::logic_error("stop"); };
  EXPECT_THROW(materialize_synthetic("synthetic:tiny", ElementType::float32, 1, cache.path(), interrupt),
               std::logic_error);
  EXPECT_EQ(entries_in(cache.path()), 0u);
}

TEST(SyntheticCache, SaysWhatToDoWithADamagedModel) {
  const testing::TemporaryFolder cache;
  const auto directory = materialize_synthetic("synthetic:tiny", ElementType::bfloat16, 0, cache.path(), {});
  std::filesystem::resize_file(directory / "model.safetensors", 1000);
  try {
    materialize_synthetic("synthetic:tiny", ElementType::bfloat16, 0, cache.path(), {});
    FAIL() << "a damaged model was taken";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("delete"), std::string::npos) << error.what();
  }
}

TEST(SyntheticCache, RefusesNamesOfOtherModels) {
  const testing::TemporaryFolder cache;
  for (const char* name : {"/models/santacoder", "synthetic:x", "synthetic:../tiny"}) {
    EXPECT_NE(refusal([&] {
                materialize_synthetic(name, ElementType::bfloat16, 0, cache.path(), {});
              }).find("synthetic:tiny"),
              std::string::npos);
  }
}

TEST(SyntheticCache, SaysHowMuchRoomIsMissing) {
  const testing::TemporaryFolder cache;
  EXPECT_NO_THROW(require_free_bytes(cache.path(), 1));
  try {
    require_free_bytes(cache.path(), std::uintmax_t{1} << 62);
    FAIL() << "4 EiB are free";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("4611686018427387904"), std::string::npos) << error.what();
  }
}

TEST(SyntheticCache, FollowsTheEnvironment) {
  const auto set = [](const char* cache, const char* xdg, const char* home) {
    ::setenv("DECODELAB_CACHE", cache, 1);
    ::setenv("XDG_CACHE_HOME", xdg, 1);
    ::setenv("HOME", home, 1);
  };
  const char* home = std::getenv("HOME");
  const std::string old_home = home == nullptr ? "" : home;
  set("/a", "/b", "/c");
  EXPECT_EQ(default_cache_directory(), "/a");
  set("", "/b", "/c");
  EXPECT_EQ(default_cache_directory(), "/b/decodelab");
  set("", "relative", "/c");
  EXPECT_EQ(default_cache_directory(), "/c/.cache/decodelab");
  set("", "", "");
  EXPECT_NE(refusal([] { default_cache_directory(); }).find("DECODELAB_CACHE"), std::string::npos);
  set("", "", old_home.c_str());
}

}  // namespace
}  // namespace decodelab
