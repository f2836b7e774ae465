// Tests of reading GGUF files: what is listed, and every kind of file that is refused.
#include "engine/checkpoint/gguf.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/checkpoint/gguf_writer.h"
#include "tests/engine/checkpoint/refusal.h"
#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

constexpr GgufType kUnsupported{10};  // Q2_K: blocks of 256 elements in 84 bytes.
const std::string kFourBytes = "abcd";

std::string refused_gguf(const std::string& file) {
  const auto bytes = gguf_copy(file);
  return refusal([&] { parse_gguf(bytes, "x.gguf"); });
}

std::string refused_gguf(const GgufWriter& writer) { return refused_gguf(writer.file()); }

// Says that a message names the file and says all of `parts`.
::testing::AssertionResult names_gguf(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (message.find(part) == std::string::npos) {
      return ::testing::AssertionFailure() << "expected " << part << " in: " << message;
    }
  }
  return message.find("x.gguf") != std::string::npos
             ? ::testing::AssertionSuccess()
             : ::testing::AssertionFailure() << "expected the name of the file in: " << message;
}

TEST(Gguf, ListsTensorsWithTheirShapesReversed) {
  GgufWriter writer;
  writer.tensor("first", {2, 3}, GgufType::f16, "0123456789ab").tensor("second", {1}, GgufType::f32, kFourBytes);
  writer.tensor("scalar", {}, GgufType::bf16, "xy").tensor("none", {0, 7}, GgufType::f32, "");
  for (const std::uint32_t version : {2u, 3u}) {
    writer.version = version;
    const auto bytes = gguf_copy(writer.file());
    const GgufFile file = parse_gguf(bytes, "x.gguf");
    EXPECT_EQ(file.version, version);
    EXPECT_EQ(file.alignment, 32);
    ASSERT_EQ(file.tensors.size(), 4u);
    const GgufTensor& first = file.tensor("first");
    EXPECT_EQ(first.type, GgufType::f16);
    EXPECT_EQ(first.shape, (std::vector<std::int64_t>{3, 2}));
    EXPECT_EQ(first.elements(), 6);
    EXPECT_EQ(first.data.size(), 12u);
    EXPECT_EQ(first.data.front(), std::byte{'0'});
    EXPECT_EQ(file.tensor("second").data.data(), first.data.data() + 32);
    EXPECT_EQ(file.tensor("scalar").elements(), 1);
    EXPECT_EQ(file.tensor("scalar").data.back(), std::byte{'y'});
    EXPECT_EQ(file.tensor("none").elements(), 0);
    EXPECT_EQ((first.data.data() - bytes.data()) % 32, 0);
  }
}

TEST(Gguf, TakesTheAlignmentFromTheMetadata) {
  for (const std::uint32_t alignment : {1u, 8u, 64u, 4096u}) {
    GgufWriter writer;
    writer.alignment = alignment;
    writer.integer("general.alignment", alignment);
    writer.tensor("a", {3}, GgufType::f16, "abcdef").tensor("b", {1}, GgufType::f32, kFourBytes);
    const auto bytes = gguf_copy(writer.file());
    const GgufFile file = parse_gguf(bytes, "x.gguf");
    EXPECT_EQ(file.alignment, alignment);
    EXPECT_EQ(file.tensor("b").data.front(), std::byte{'a'}) << alignment;
    EXPECT_EQ(static_cast<std::size_t>(file.tensor("b").data.data() - bytes.data()) % alignment, 0u);
  }
}

TEST(Gguf, TakesAFileWithoutTensorsThatEndsBeforeItsPadding) {
  GgufWriter writer;
  writer.text("general.name", "no weights");
  const auto bytes = gguf_copy(writer.header());
  EXPECT_EQ(parse_gguf(bytes, "x.gguf").metadata.text("general.name"), "no weights");
}

TEST(Gguf, ListsOtherTypesAndRefusesThemByNameOnUse) {
  GgufWriter writer;
  writer.tensor("blk.0.weight", {256, 2}, kUnsupported, std::string(168, 'q'));
  writer.tensor("old", {32}, GgufType{20}, std::string(18, 'q'));
  const auto bytes = gguf_copy(writer.file());
  const GgufFile file = parse_gguf(bytes, "x.gguf");
  EXPECT_EQ(file.tensors.at("blk.0.weight").data.size(), 168u);
  EXPECT_EQ(gguf_type_name(file.tensors.at("blk.0.weight").type), "Q2_K");
  EXPECT_TRUE(names_gguf(refusal([&] { file.tensor("blk.0.weight"); }), {"'blk.0.weight'", "got Q2_K", "Q4_1"}));
  EXPECT_TRUE(names_gguf(refusal([&] { file.tensor("old"); }), {"'old'", "got IQ4_NL"}));
  EXPECT_TRUE(names_gguf(refusal([&] { file.tensor("other"); }), {"'other'", "got none"}));
}

TEST(Gguf, RefusesOtherFiles) {
  EXPECT_TRUE(names_gguf(refused_gguf(std::string()), {"got 0 bytes"}));
  EXPECT_TRUE(names_gguf(refused_gguf(std::string("GGU")), {"got 3 bytes"}));
  GgufWriter writer;
  writer.magic = "GGML";
  EXPECT_TRUE(names_gguf(refused_gguf(writer), {"'GGUF'", "'GGML'"}));
  writer.magic = "\x1b[2J";
  EXPECT_TRUE(names_gguf(refused_gguf(writer), {R"('\x1b[2J')"}));
}

TEST(Gguf, RefusesOtherVersionsAndBigEndianFiles) {
  GgufWriter writer;
  for (const std::uint32_t version : {0u, 1u, 4u}) {
    writer.version = version;
    EXPECT_TRUE(names_gguf(refused_gguf(writer), {"version 2 or 3", "got version " + std::to_string(version)}));
  }
  writer.version = 3u << 24;
  EXPECT_TRUE(names_gguf(refused_gguf(writer), {"got a big-endian one"}));
}

TEST(Gguf, RefusesAFileThatWasCutAnywhere) {
  GgufWriter writer;
  writer.integer("a", 7).texts("b", {"one", "two"}).boolean("c", true);
  writer.tensor("t", {2, 2}, GgufType::f32, std::string(16, 'd'));
  const std::string whole = writer.file();
  EXPECT_EQ(refused_gguf(whole), "");
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_TRUE(names_gguf(refused_gguf(whole.substr(0, bytes)), {"expected", "got"})) << bytes;
  }
}

TEST(Gguf, RefusesCountsThatTheFileCannotHold) {
  GgufWriter writer;
  writer.integer("a", 7).tensor("t", {1}, GgufType::f32, kFourBytes);
  for (const std::int64_t extra : {std::int64_t{100}, std::int64_t{1} << 40, std::int64_t{-2}}) {
    GgufWriter keys = writer;
    keys.extra_keys = extra;
    EXPECT_TRUE(names_gguf(refused_gguf(keys), {"a number of keys of at most"})) << extra;
    GgufWriter tensors = writer;
    tensors.extra_tensors = extra;
    EXPECT_TRUE(names_gguf(refused_gguf(tensors), {"a number of tensors of at most"})) << extra;
  }
}

TEST(Gguf, RefusesATensorThatStandsTwice) {
  GgufWriter writer;
  writer.tensor("t", {1}, GgufType::f32, kFourBytes).tensor("t", {1}, GgufType::f32, kFourBytes);
  EXPECT_TRUE(names_gguf(refused_gguf(writer), {"'t'", "twice"}));
}

TEST(Gguf, RefusesAnAlignmentThatIsNoPowerOfTwo) {
  for (const std::uint32_t alignment : {0u, 3u, 24u}) {
    GgufWriter writer;
    writer.integer("general.alignment", alignment);
    EXPECT_TRUE(names_gguf(refused_gguf(writer), {"'general.alignment'", "got " + std::to_string(alignment)}));
  }
  GgufWriter negative;
  negative.key("general.alignment", GgufValueType::int64, gguf_bytes(std::int64_t{-32}));
  EXPECT_TRUE(names_gguf(refused_gguf(negative), {"'general.alignment'", "got -32"}));
  GgufWriter text;
  text.text("general.alignment", "32");
  EXPECT_TRUE(names_gguf(refused_gguf(text), {"'general.alignment'", "the text '32'"}));
}

TEST(Gguf, TakesAnAlignmentBeyondTheEndOfTheFile) {
  GgufWriter writer;
  writer.key("general.alignment", GgufValueType::uint64, gguf_bytes(std::uint64_t{1} << 62));
  EXPECT_EQ(refused_gguf(writer), "");
  writer.info("t", {1}, GgufType::f32, 0).data(kFourBytes);
  EXPECT_TRUE(names_gguf(refused_gguf(writer), {"'t'", "the file's 0 data bytes"}));
}

// One tensor that must not pass before four bytes of data.
struct BadGgufTensor {
  std::vector<std::uint64_t> dimensions;
  std::uint32_t type;
  std::uint64_t offset;
  const char* message;
};

class GgufInfoOf : public ::testing::TestWithParam<BadGgufTensor> {};

TEST_P(GgufInfoOf, IsRefusedWithTheNamesOfFileAndTensor) {
  GgufWriter writer;
  const BadGgufTensor& bad = GetParam();
  writer.info("weight", bad.dimensions, GgufType{bad.type}, bad.offset).data(kFourBytes);
  EXPECT_TRUE(names_gguf(refused_gguf(writer), {"'weight'", bad.message}));
}

constexpr std::uint64_t kHuge = std::uint64_t{1} << 62;

INSTANTIATE_TEST_SUITE_P(
    Gguf, GgufInfoOf,
    ::testing::Values(BadGgufTensor{{1, 1, 1, 1, 1}, 0, 0, "at most 4 dimensions, got 5"},
                      BadGgufTensor{{1}, 4, 0, "got number 4"}, BadGgufTensor{{1}, 99, 0, "got number 99"},
                      BadGgufTensor{{2}, 0, 0, "expected its 8 bytes"},
                      BadGgufTensor{{1}, 0, 32, "expected its 4 bytes from 32 on"},
                      BadGgufTensor{{1}, 0, 2, "a multiple of 32, got 2"},
                      BadGgufTensor{{1}, 0, ~std::uint64_t{31}, "expected its 4 bytes from 18446744073709551584 on"},
                      BadGgufTensor{{0}, 0, ~std::uint64_t{31}, "expected its 0 bytes from 18446744073709551584 on"},
                      BadGgufTensor{{16}, 8, 0, "whole blocks of 32 elements for Q8_0, got rows of 16"},
                      BadGgufTensor{{33, 2}, 2, 0, "whole blocks of 32 elements for Q4_0, got rows of 33"},
                      BadGgufTensor{{}, 3, 0, "whole blocks of 32 elements for Q4_1, got rows of 1"},
                      BadGgufTensor{{2 * kHuge}, 0, 0, "below 2^63, got 9223372036854775808"},
                      BadGgufTensor{{kHuge}, 0, 0, "below 2^63, got the shape [4611686018427387904]"},
                      BadGgufTensor{{0, 4, kHuge}, 0, 0, "below 2^63, got the shape [4611686018427387904, 4, 0]"},
                      BadGgufTensor{{kHuge, 4}, 24, 0, "below 2^63, got the shape [4, 4611686018427387904]"}));

TEST(Gguf, RefusesTensorsThatOverlap) {
  GgufWriter writer;
  writer.info("a", {16}, GgufType::f32, 0).info("b", {1}, GgufType::f32, 32).data(std::string(64, 'd'));
  EXPECT_TRUE(names_gguf(refused_gguf(writer), {"'b'", "overlap", "got 32"}));
  GgufWriter same;
  same.info("a", {1}, GgufType::f32, 0).info("b", {1}, GgufType::f32, 0).data(kFourBytes);
  EXPECT_TRUE(names_gguf(refused_gguf(same), {"overlap"}));
  GgufWriter beside;
  beside.info("a", {8}, GgufType::f32, 32).info("b", {8}, GgufType::f32, 0).data(std::string(64, 'd'));
  EXPECT_EQ(refused_gguf(beside), "");
}

TEST(Gguf, ReaderMapsAFileAndMayBeMoved) {
  const testing::TemporaryFolder folder;
  GgufWriter writer;
  writer.text("general.name", "small").tensor("t", {1}, GgufType::f32, kFourBytes);
  GgufReader reader(folder.write("small.gguf", writer.file()));
  const GgufReader moved(std::move(reader));
  EXPECT_EQ(moved.file().metadata.text("general.name"), "small");
  EXPECT_EQ(moved.file().tensor("t").data.back(), std::byte{'d'});
  const auto cut = folder.write("x.gguf", writer.file().substr(0, 40));
  EXPECT_TRUE(names_gguf(refusal([&] { GgufReader broken(cut); }), {"got", "cut short"}));
  EXPECT_TRUE(names_gguf(refusal([&] { GgufReader missing(folder / "missing_x.gguf"); }), {"cannot be opened"}));
}

TEST(Gguf, IsKnownByItsFirstLetters) {
  const testing::TemporaryFolder folder;
  EXPECT_TRUE(is_gguf(folder.write("model.bin", GgufWriter().file())));
  EXPECT_FALSE(is_gguf(folder.write("model.gguf", "GGML")));
  EXPECT_FALSE(is_gguf(folder.write("short.gguf", "GGU")));
  EXPECT_FALSE(is_gguf(folder.path()));
  EXPECT_FALSE(is_gguf(folder / "missing.gguf"));
}

}  // namespace
}  // namespace decodelab
