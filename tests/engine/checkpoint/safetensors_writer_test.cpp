// Tests of writing safetensors files: round trips, layout, pieces, and what is left behind when a file is not finished.
#include "engine/checkpoint/safetensors_writer.h"

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/checkpoint/file_map.h"
#include "tests/engine/checkpoint/refusal.h"
#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

std::vector<std::byte> ramp(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(i * 7 + 1);
  }
  return bytes;
}

std::size_t files_in(const std::filesystem::path& directory) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator()));
}

TEST(SafetensorsWriter, WritesWhatTheReaderReads) {
  const testing::TemporaryFolder directory;
  const auto odd = ramp(6);
  const auto wide = ramp(16);
  const std::vector<TensorToWrite> tensors{
      {.name = "odd \"name\" \xc3\xa9", .type = ElementType::float16, .shape = {3}, .data = odd},
      {.name = "wide", .type = ElementType::float32, .shape = {2, 2}, .data = wide},
      {.name = "none", .type = ElementType::bfloat16, .shape = {4, 0}, .data = {}}};
  write_safetensors(directory.path() / "model.safetensors", tensors);
  EXPECT_EQ(files_in(directory.path()), 1u);

  const SafetensorsReader reader(directory.path());
  ASSERT_EQ(reader.tensors().size(), tensors.size());
  for (const TensorToWrite& tensor : tensors) {
    const StoredTensor& stored = reader.tensors().at(tensor.name);
    EXPECT_EQ(stored.element_type(tensor.name), tensor.type);
    EXPECT_EQ(stored.shape, tensor.shape);
    EXPECT_TRUE(std::ranges::equal(stored.data, tensor.data));
  }
}

TEST(SafetensorsWriter, PutsTheDataAtAMultipleOf64AndAlignsEveryElement) {
  const testing::TemporaryFolder directory;
  for (std::size_t length = 1; length < 70; ++length) {
    const auto odd = ramp(2);
    const auto wide = ramp(4);
    const std::vector<TensorToWrite> tensors{
        {.name = std::string(length, 'n'), .type = ElementType::float16, .shape = {1}, .data = odd},
        {.name = "wide", .type = ElementType::float32, .shape = {1}, .data = wide}};
    write_safetensors(directory.path() / "a.safetensors", tensors);
    const FileMap map(directory.path() / "a.safetensors");
    const auto stored = parse_safetensors(map.bytes(), "a.safetensors");
    EXPECT_EQ((stored.at("wide").data.data() - map.bytes().data()) % 64, 0) << length;
  }
}

TEST(SafetensorsWriter, TakesATensorInPiecesOfAnyOrder) {
  const testing::TemporaryFolder directory;
  const auto data = ramp(10);
  const std::vector<TensorToDeclare> declared{{.name = "a", .type = ElementType::bfloat16, .shape = {5}}};
  SafetensorsWriter writer(directory.path() / "model.safetensors", declared);
  writer.write_part("a", 4, std::span(data).subspan(4));
  writer.write_part("a", 0, std::span(data).first(4));
  writer.commit();
  const SafetensorsReader reader(directory.path());
  EXPECT_TRUE(std::ranges::equal(reader.tensors().at("a").data, data));
}

TEST(SafetensorsWriter, LeavesNothingBehindWithoutACommit) {
  const testing::TemporaryFolder directory;
  const auto old = ramp(2);
  const std::vector<TensorToWrite> tensors{{.name = "old", .type = ElementType::float16, .shape = {1}, .data = old}};
  write_safetensors(directory.path() / "model.safetensors", tensors);
  {
    const std::vector<TensorToDeclare> declared{{.name = "new", .type = ElementType::float16, .shape = {1}}};
    SafetensorsWriter writer(directory.path() / "model.safetensors", declared);
    EXPECT_EQ(files_in(directory.path()), 2u);
    const std::string message = refusal([&] { writer.commit(); });
    EXPECT_NE(message.find("'new'"), std::string::npos) << message;
  }
  EXPECT_EQ(files_in(directory.path()), 1u);
  EXPECT_TRUE(SafetensorsReader(directory.path()).tensors().contains("old"));
}

TEST(SafetensorsWriter, RefusesWhatWasNotDeclared) {
  const testing::TemporaryFolder directory;
  const auto data = ramp(8);
  const std::vector<TensorToDeclare> declared{{.name = "a", .type = ElementType::float32, .shape = {1}}};
  SafetensorsWriter writer(directory.path() / "model.safetensors", declared);
  EXPECT_NE(refusal([&] { writer.write("b", std::span(data).first(4)); }), "");
  EXPECT_NE(refusal([&] { writer.write("a", data); }), "");
  EXPECT_NE(refusal([&] { writer.write_part("a", 2, std::span(data).first(4)); }), "");
  EXPECT_NE(refusal([&] { writer.write_part("a", -1, std::span(data).first(1)); }), "");
  writer.write("a", std::span(data).first(4));
  EXPECT_NE(refusal([&] { writer.write("a", std::span(data).first(4)); }), "");
}

TEST(SafetensorsWriter, RefusesNamesAndShapesThatNoFileCanHold) {
  const testing::TemporaryFolder directory;
  const auto declare = [&](std::vector<TensorToDeclare> tensors) {
    return refusal([&] { SafetensorsWriter(directory.path() / "model.safetensors", tensors); });
  };
  EXPECT_NE(declare({{.name = "a", .type = ElementType::float32, .shape = {1}},
                     {.name = "a", .type = ElementType::float32, .shape = {1}}}),
            "");
  EXPECT_NE(declare({{.name = "__metadata__", .type = ElementType::float32, .shape = {1}}}), "");
  EXPECT_NE(declare({{.name = "\xff", .type = ElementType::float32, .shape = {1}}}), "");
  EXPECT_NE(declare({{.name = "a", .type = ElementType::float32, .shape = {-1}}}), "");
  EXPECT_NE(declare({{.name = "a", .type = ElementType::float32, .shape = {1LL << 40, 1LL << 40}}}), "");
  EXPECT_EQ(files_in(directory.path()), 0u);
}

TEST(SafetensorsWriter, SaysThatTheWorldIsAtFaultWhenTheDirectoryIsMissing) {
  const std::vector<TensorToDeclare> declared{{.name = "a", .type = ElementType::float32, .shape = {1}}};
  EXPECT_THROW(SafetensorsWriter("/nowhere/model.safetensors", declared), std::runtime_error);
}

}  // namespace
}  // namespace decodelab
