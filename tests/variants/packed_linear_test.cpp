// Packed weights are read where an earlier model of the same content kept them, and packed anew where they are damaged.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/variants/arms.h"

namespace decodelab {
namespace {

namespace fs = std::filesystem;
using testing::engine_for;
using testing::small_model;
using testing::TemporaryFolder;

/// Wide enough that some of its weights are worth a file.
ModelConfig wide_config() {
  ModelConfig config = testing::small_config();
  config.layers = 1;
  config.hidden_size = 512;
  config.head_dim = 128;
  config.intermediate_size = 2048;
  return config;
}

/// Puts the cache folder of this process into another place for one test.
class CacheFolder {
 public:
  CacheFolder() {
    if (const char* const before = std::getenv("DECODELAB_CACHE")) {
      before_ = before;
    }
    setenv("DECODELAB_CACHE", folder_.path().c_str(), 1);
  }
  ~CacheFolder() { before_ ? setenv("DECODELAB_CACHE", before_->c_str(), 1) : unsetenv("DECODELAB_CACHE"); }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  std::vector<fs::path> packed() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "packed")) {
      if (entry.is_regular_file() && entry.path().filename() != "used") {
        files.push_back(entry.path());
      }
    }
    std::ranges::sort(files);
    return files;
  }

 private:
  TemporaryFolder folder_;
  std::optional<std::string> before_;
};

std::vector<float> logits(const Engine& engine, std::int64_t prompt_tokens) {
  Session session(engine, {.batch_size = 1, .max_tokens = 60, .details = {}});
  std::vector<std::int64_t> prompt;
  for (std::int64_t token = 0; token < prompt_tokens; ++token) {
    prompt.push_back(token);
  }
  session.prefill(std::vector<std::vector<std::int64_t>>{prompt});
  session.decode();
  return session.last_logits();
}

TEST(PackedLinear, ReadsWhatAnEarlierModelOfTheSameContentPacked) {
  for (const ElementType dtype : {ElementType::float32, ElementType::bfloat16}) {
    const CacheFolder cache;
    const TemporaryFolder checkpoint;
    testing::write_small_checkpoint(checkpoint.path(), wide_config());
    const auto run = [&] { return logits(engine_for("native", Model::load(checkpoint.path(), dtype, "cpu")), 3); };
    const std::vector<float> packed = run();
    const std::vector<fs::path> files = cache.packed();
    // Those of the MLP, and in fp32 the two about attention; the head's and the others are small.
    ASSERT_EQ(files.size(), dtype == ElementType::float32 ? 4U : 2U);
    const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
    for (const fs::path& file : files) {
      fs::last_write_time(file, old);
    }
    EXPECT_EQ(run(), packed);
    for (const fs::path& file : files) {
      EXPECT_EQ(fs::last_write_time(file), old) << "what was read is not written again";
    }
    std::fstream damaged(files[0], std::ios::in | std::ios::out | std::ios::binary);
    damaged.seekp(-1, std::ios::end);
    damaged.put('\x55');
    damaged.close();
    fs::last_write_time(files[0], old);
    EXPECT_EQ(run(), packed) << "a damaged file is not believed";
    EXPECT_NE(fs::last_write_time(files[0]), old) << "and is made anew";
    EXPECT_EQ(run(), packed);
  }
}

TEST(PackedLinear, BringsWeightsForManyRowsIntoTheirOrderWhenManyRowsCome) {
  const CacheFolder cache;
  const auto model = small_model(wide_config());
  const Engine engine = engine_for("native", model);
  const std::int64_t packed_ns = model->packing_ns();
  EXPECT_GT(packed_ns, 0);
  logits(engine, 3);
  EXPECT_EQ(model->packing_ns(), packed_ns) << "few rows need nothing more";
  const std::vector<float> many = logits(engine, 40);
  EXPECT_LT(testing::relative_difference(many, logits(engine_for("causal", model), 40)),
            testing::tolerance(ElementType::float32));
}

}  // namespace
}  // namespace decodelab
