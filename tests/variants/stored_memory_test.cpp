// What a model takes in memory whose weights stay as its file holds them: no copy of more than one layer while it is
// loaded, and its blocks and no more afterwards.
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "bench/machine/environment.h"
#include "tests/variants/arms.h"
#include "tests/variants/stored_file.h"

namespace decodelab {
namespace {

constexpr std::string_view kStoredArm = "native,-packed-linear,+mapped-embedding,+stored-linear";
constexpr double kMegabytes = 1e-6;

/// Makes the most that this process ever held what it holds now (proc(5), clear_refs).
bool forget_peak() {
  std::ofstream refs("/proc/self/clear_refs");
  refs << 5 << std::flush;
  return refs.good();
}

/// Says one token, so that all that is made on the way is there.
void say_one_token(const Engine& engine) {
  static_cast<void>(generate(engine, {.prompts = {{1, 2, 3}}, .max_tokens = 2}));
}

struct Held {
  std::int64_t before;
  std::int64_t peak;
  std::int64_t after;
  std::int64_t stored;  ///< The bytes of the blocks, as the engine holds them.
};

Held held_by(const std::filesystem::path& file) {
  Held held{.before = resident_bytes(), .peak = 0, .after = 0, .stored = 0};
  const auto model = Model::load(file, ElementType::float32, "cpu");
  const Engine engine = testing::engine_for(std::string(kStoredArm), model);
  say_one_token(engine);
  held.peak = peak_resident_bytes();
  held.after = resident_bytes();
  for (const auto& [name, bytes] : engine.coded_bytes()) {
    held.stored += bytes;
  }
  return held;
}

TEST(StoredMemory, IsTheBlocksAndWhileLoadingOneLayerMore) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer's own memory is part of what the process holds";
#endif
  // 17 MB of Q4_0 a layer, so that what libraries allocate on the way is little beside it.
  const testing::StoredShape shape{.wide = 1024, .inner = 8192, .layers = 6, .tokens = 97};
  const auto file = testing::stored_file(GgufType::q4_0, GgufType::q4_0, shape);
  held_by(testing::stored_file(GgufType::q4_0, GgufType::q4_0));  // What is made once is no part of a model.
  ASSERT_TRUE(forget_peak()) << "this kernel does not let a process forget its peak";
  const Held held = held_by(file);
  const std::int64_t layer = held.stored / static_cast<std::int64_t>(shape.layers);
  const auto over = [&](std::int64_t bytes) { return static_cast<double>(bytes - held.before) * kMegabytes; };
  RecordProperty("stored_mb", std::to_string(static_cast<double>(held.stored) * kMegabytes));
  RecordProperty("peak_mb", std::to_string(over(held.peak)));
  RecordProperty("after_mb", std::to_string(over(held.after)));
  // Keys and activations; and, for each layer and the ends, the pages of the file around its norms, of which the system
  // maps up to 2 MiB where one is touched, and may drop them at any time.
  const double workspace = 8 + 2.1 * static_cast<double>(shape.layers + 1);
  EXPECT_LE(over(held.peak), static_cast<double>(held.stored + layer) * kMegabytes + workspace);
  EXPECT_LE(over(held.after), static_cast<double>(held.stored) * kMegabytes + workspace);
  std::filesystem::remove(file);
}

TEST(StoredMemory, OfManySmallMatricesIsNotRoundedUpToHugePages) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer's own memory is part of what the process holds";
#endif
  const testing::StoredShape shape{.wide = 256, .inner = 512, .layers = 60, .tokens = 97};
  const auto file = testing::stored_file(GgufType::q4_0, GgufType::q4_0, shape);
  held_by(testing::stored_file(GgufType::q4_0, GgufType::q4_0));
  const Held held = held_by(file);
  // 240 matrices: of a huge page each they would take 500 MB.
  EXPECT_LE(static_cast<double>(held.after - held.before), 2 * static_cast<double>(held.stored));
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace decodelab
