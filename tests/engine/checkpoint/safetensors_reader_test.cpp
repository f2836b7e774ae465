// Tests of opening checkpoint directories: one file, shards with an index, and what is said of other contents.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/checkpoint/safetensors.h"
#include "tests/engine/checkpoint/refusal.h"
#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

const std::vector<std::byte> kFour(4, std::byte{5});

void write_one(const std::filesystem::path& file, const std::string& tensor) {
  const std::vector<TensorToWrite> tensors{{.name = tensor, .type = ElementType::float32, .shape = {1}, .data = kFour}};
  write_safetensors(file, tensors);
}

std::string refused(const testing::TemporaryFolder& directory) {
  return refusal([&] { SafetensorsReader reader(directory.path()); });
}

TEST(SafetensorsReader, ReadsTheShardsOfAnIndex) {
  const testing::TemporaryFolder directory;
  write_one(directory.path() / "one.safetensors", "a");
  write_one(directory.path() / "two.safetensors", "b");
  directory.write("model.safetensors.index.json",
                  R"({"metadata":{"total_size":8},"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  SafetensorsReader reader(directory.path());
  EXPECT_EQ(reader.tensors().size(), 2u);
  const SafetensorsReader moved(std::move(reader));
  EXPECT_EQ(moved.tensors().at("b").data.front(), std::byte{5});
}

TEST(SafetensorsReader, NamesAMissingShard) {
  const testing::TemporaryFolder directory;
  directory.write("model.safetensors.index.json", R"({"weight_map":{"a":"one.safetensors"}})");
  EXPECT_NE(refused(directory).find("'one.safetensors'"), std::string::npos) << refused(directory);
}

TEST(SafetensorsReader, RefusesATensorInTwoShards) {
  const testing::TemporaryFolder directory;
  write_one(directory.path() / "one.safetensors", "a");
  write_one(directory.path() / "two.safetensors", "a");
  directory.write("model.safetensors.index.json", R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  EXPECT_NE(refused(directory).find("expected it in one shard"), std::string::npos) << refused(directory);
}

TEST(SafetensorsReader, RefusesAnIndexThatPointsToTheWrongShard) {
  const testing::TemporaryFolder directory;
  write_one(directory.path() / "one.safetensors", "a");
  write_one(directory.path() / "two.safetensors", "b");
  directory.write("model.safetensors.index.json",
                  R"({"weight_map":{"a":"two.safetensors","b":"two.safetensors","c":"one.safetensors"}})");
  EXPECT_NE(refused(directory).find("tensor 'a'"), std::string::npos) << refused(directory);
}

TEST(SafetensorsReader, RefusesShardNamesThatLeaveTheDirectory) {
  for (const char* name :
       {"../x.safetensors", "/etc/passwd", "a/b.safetensors", "..", ".", "", "a\\\\b", "a\\u0000b"}) {
    const std::string text = std::string(R"({"weight_map":{"a":")") + name + "\"}}";
    EXPECT_NE(refusal([&] { parse_safetensors_index(text, "index.json"); }), "") << name;
  }
  EXPECT_NE(refusal([] { parse_safetensors_index(R"({"weight_map":{"a":1}})", "index.json"); }), "");
  EXPECT_NE(refusal([] { parse_safetensors_index(R"({"weight_map":{}})", "index.json"); }), "");
  EXPECT_NE(refusal([] { parse_safetensors_index(R"({})", "index.json"); }), "");
}

TEST(SafetensorsReader, SaysHowToConvertOtherFormats) {
  for (const char* name : {"pytorch_model.bin", "santacoder.gguf"}) {
    const testing::TemporaryFolder directory;
    directory.write(name, "x");
    const std::string message = refused(directory);
    EXPECT_NE(message.find(name), std::string::npos) << message;
    EXPECT_NE(message.find("safe_serialization"), std::string::npos) << message;
  }
}

TEST(SafetensorsReader, SaysWhenThereIsNoDirectory) {
  EXPECT_NE(refusal([] { SafetensorsReader reader("/nowhere/at/all"); }).find("/nowhere/at/all"), std::string::npos);
  const testing::TemporaryFolder directory;
  const auto file = directory.write("a.txt", "x");
  EXPECT_NE(refusal([&] { SafetensorsReader reader(file); }).find("a.txt"), std::string::npos);
  EXPECT_NE(refused(directory).find("neither"), std::string::npos) << refused(directory);
}

TEST(SafetensorsReader, RefusesAnEmptyFile) {
  const testing::TemporaryFolder directory;
  directory.write("model.safetensors", "");
  EXPECT_NE(refused(directory).find("model.safetensors"), std::string::npos);
}

}  // namespace
}  // namespace decodelab
