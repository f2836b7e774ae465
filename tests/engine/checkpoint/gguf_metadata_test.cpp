// Tests of the keys and values of GGUF files: every type is read, and every wrong use names the key and both types.
#include "engine/checkpoint/gguf_metadata.h"

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/checkpoint/gguf_writer.h"
#include "tests/engine/checkpoint/refusal.h"

namespace decodelab {
namespace {

// Metadata with the bytes that it points into.
struct KeptGgufMetadata {
  std::string file_name = "x.gguf";
  std::vector<std::byte> bytes;
  GgufMetadata metadata;

  explicit KeptGgufMetadata(const GgufWriter& writer) : bytes(gguf_copy(writer.header())), metadata(read()) {}

  GgufMetadata read() const {
    GgufCursor cursor(bytes, file_name);
    cursor.take(4 + 4 + 8, "the beginning");
    const auto count = cursor.number<std::uint64_t>("the number of keys");
    return {cursor, count};
  }
};

std::string refused_gguf_key(const std::string& value, GgufValueType type) {
  GgufWriter writer;
  writer.key("some.key", type, value);
  return refusal([&] { KeptGgufMetadata metadata(writer); });
}

bool says_gguf(const std::string& message, std::string_view part) {
  return message.find("x.gguf") != std::string::npos && message.find(part) != std::string::npos;
}

TEST(GgufMetadata, ReadsIntegersOfEveryWidth) {
  GgufWriter writer;
  writer.key("u8", GgufValueType::uint8, gguf_bytes(std::uint8_t{255}));
  writer.key("i8", GgufValueType::int8, gguf_bytes(std::int8_t{-128}));
  writer.key("u16", GgufValueType::uint16, gguf_bytes(std::uint16_t{65535}));
  writer.key("i16", GgufValueType::int16, gguf_bytes(std::int16_t{-32768}));
  writer.key("u32", GgufValueType::uint32, gguf_bytes(std::uint32_t{4294967295}));
  writer.key("i32", GgufValueType::int32, gguf_bytes(std::int32_t{-2147483647}));
  writer.key("u64", GgufValueType::uint64, gguf_bytes(std::uint64_t{1} << 62));
  writer.key("i64", GgufValueType::int64, gguf_bytes(std::numeric_limits<std::int64_t>::min()));
  const KeptGgufMetadata kept(writer);
  EXPECT_EQ(kept.metadata.integer("u8"), 255);
  EXPECT_EQ(kept.metadata.integer("i8"), -128);
  EXPECT_EQ(kept.metadata.integer("u16"), 65535);
  EXPECT_EQ(kept.metadata.integer("i16"), -32768);
  EXPECT_EQ(kept.metadata.integer("u32"), 4294967295);
  EXPECT_EQ(kept.metadata.integer("i32"), -2147483647);
  EXPECT_EQ(kept.metadata.integer("u64"), std::int64_t{1} << 62);
  EXPECT_EQ(kept.metadata.integer("i64"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(kept.metadata.number("i8"), -128.0);
  EXPECT_EQ(kept.metadata.values().size(), 8u);
}

TEST(GgufMetadata, ReadsFloatsBooleansAndTexts) {
  GgufWriter writer;
  writer.key("f32", GgufValueType::float32, gguf_bytes(1e-5f));
  writer.key("f64", GgufValueType::float64, gguf_bytes(1e-5));
  writer.boolean("yes", true).boolean("no", false).text("text", "na\xc3\xafve").text("empty", "");
  const KeptGgufMetadata kept(writer);
  EXPECT_EQ(kept.metadata.number("f32"), double{1e-5f});
  EXPECT_EQ(kept.metadata.number("f64"), 1e-5);
  EXPECT_TRUE(kept.metadata.boolean("yes"));
  EXPECT_FALSE(kept.metadata.boolean("no"));
  EXPECT_EQ(kept.metadata.text("text"), "na\xc3\xafve");
  EXPECT_EQ(kept.metadata.text("empty"), "");
  EXPECT_TRUE(kept.metadata.contains("empty"));
  EXPECT_FALSE(kept.metadata.contains("other"));
}

TEST(GgufMetadata, ReadsArrays) {
  GgufWriter writer;
  writer.integers("integers", {3, -1, 2}).texts("texts", {"one", "", "three"}).integers("none", {});
  writer.key("floats", GgufValueType::array, gguf_array_bytes(GgufValueType::float32, std::vector<float>{0.5f, -2.0f}));
  writer.key("bytes", GgufValueType::array, gguf_array_bytes(GgufValueType::uint8, std::vector<std::uint8_t>{255, 0}));
  writer.key("booleans", GgufValueType::array,
             gguf_array_bytes(GgufValueType::boolean, std::vector<std::uint8_t>{1, 0, 1}));
  const KeptGgufMetadata kept(writer);
  EXPECT_EQ(kept.metadata.integers("integers"), (std::vector<std::int64_t>{3, -1, 2}));
  EXPECT_EQ(kept.metadata.integers("bytes"), (std::vector<std::int64_t>{255, 0}));
  EXPECT_EQ(kept.metadata.numbers("floats"), (std::vector<double>{0.5, -2.0}));
  EXPECT_EQ(kept.metadata.numbers("integers"), (std::vector<double>{3, -1, 2}));
  EXPECT_EQ(kept.metadata.booleans("booleans"), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(kept.metadata.texts("texts"), (std::vector<std::string_view>{"one", "", "three"}));
  EXPECT_TRUE(kept.metadata.integers("none").empty());
}

TEST(GgufMetadata, SaysWhatWasExpectedAndWhatWasFound) {
  GgufWriter writer;
  writer.integer("integer", 7).boolean("boolean", true).text("text", "seven").texts("texts", {"a", "b"});
  writer.key("float", GgufValueType::float32, gguf_bytes(0.5f));
  writer.key("large", GgufValueType::uint64, gguf_bytes(std::uint64_t{1} << 63));
  writer.key("larges", GgufValueType::array,
             gguf_array_bytes(GgufValueType::uint64, std::vector<std::uint64_t>{1, std::uint64_t{1} << 63}));
  const KeptGgufMetadata kept(writer);
  const GgufMetadata& metadata = kept.metadata;
  EXPECT_PRED2(says_gguf, refusal([&] { metadata.integer("text"); }),
               "key 'text': expected an integer below 2^63, got the text 'seven'");
  EXPECT_PRED2(says_gguf, refusal([&] { metadata.integer("float"); }), "got the float 0.5");
  EXPECT_PRED2(says_gguf, refusal([&] { metadata.integer("boolean"); }), "got true");
  EXPECT_PRED2(says_gguf, refusal([&] { metadata.integer("large"); }), "got the integer 9223372036854775808");
  EXPECT_PRED2(says_gguf, refusal([&] { metadata.integer("missing"); }),
               "key 'missing': expected an integer below 2^63, got no such key");
  EXPECT_PRED2(says_gguf, refusal([&] { metadata.number("text"); }), "expected a number, got the text 'seven'");
  EXPECT_PRED2(says_gguf, refusal([&] { metadata.boolean("integer"); }), "expected true or false, got the integer 7");
  EXPECT_PRED2(says_gguf, refusal([&] { metadata.text("texts"); }),
               "expected a text, got an array of 2 values of the type text");
  EXPECT_PRED2(says_gguf, refusal([&] { metadata.texts("text"); }), "expected an array of texts, got the text 'seven'");
  EXPECT_PRED2(says_gguf, refusal([&] { metadata.integers("texts"); }),
               "expected an array of integers below 2^63, got an array of 2 values of the type text with the text 'a'");
  EXPECT_PRED2(says_gguf, refusal([&] { metadata.integers("larges"); }), "with the integer 9223372036854775808");
  EXPECT_PRED2(says_gguf, refusal([&] { metadata.texts("missing"); }), "got no such key");
}

TEST(GgufMetadata, RefusesAKeyThatStandsTwiceOrIsEmpty) {
  GgufWriter writer;
  writer.integer("some.key", 1).text("some.key", "two");
  EXPECT_PRED2(says_gguf, refusal([&] { KeptGgufMetadata metadata(writer); }), "'some.key' twice");
  GgufWriter empty;
  empty.integer("", 1);
  EXPECT_PRED2(says_gguf, refusal([&] { KeptGgufMetadata metadata(empty); }), "an empty one");
}

TEST(GgufMetadata, RefusesUnknownTypesAndBooleans) {
  EXPECT_PRED2(says_gguf, refused_gguf_key("", GgufValueType{13}), "from 0 to 12, got 13");
  EXPECT_PRED2(says_gguf, refused_gguf_key("\x02", GgufValueType::boolean), "a boolean, 0 or 1, got 2");
  EXPECT_PRED2(says_gguf,
               refused_gguf_key(gguf_array_bytes(GgufValueType::boolean, std::vector<std::uint8_t>{1, 255}),
                                GgufValueType::array),
               "a boolean, 0 or 1, got 255");
  EXPECT_PRED2(says_gguf,
               refused_gguf_key(gguf_array_bytes(GgufValueType{13}, std::vector<std::uint8_t>{}), GgufValueType::array),
               "from 0 to 12, got 13");
}

TEST(GgufMetadata, RefusesLengthsBeyondTheFile) {
  for (const std::uint64_t length : {std::uint64_t{9}, std::uint64_t{1} << 61, ~std::uint64_t{0}}) {
    const std::string bytes = gguf_bytes(length) + "8 bytes.";
    EXPECT_PRED2(says_gguf, refused_gguf_key(bytes, GgufValueType::text), "bytes for text, got 8 to the end") << length;
    for (const GgufValueType type : {GgufValueType::uint8, GgufValueType::boolean, GgufValueType::uint64,
                                     GgufValueType::text, GgufValueType::array}) {
      const std::string array = gguf_bytes(static_cast<std::uint32_t>(type)) + bytes;
      EXPECT_PRED2(says_gguf, refused_gguf_key(array, GgufValueType::array), "the length of an array of at most")
          << length;
    }
  }
}

TEST(GgufMetadata, ListsNestedArraysToALimitAndGivesNoneOfThemOut) {
  const auto nested = [](int depth) {
    std::string bytes = gguf_array_bytes(GgufValueType::int32, std::vector<std::int32_t>{1, 2});
    for (int i = 1; i < depth; ++i) {
      bytes = gguf_bytes(static_cast<std::uint32_t>(GgufValueType::array)) + gguf_bytes(std::uint64_t{1}) + bytes;
    }
    return bytes;
  };
  EXPECT_EQ(refused_gguf_key(nested(4), GgufValueType::array), "");
  EXPECT_PRED2(says_gguf, refused_gguf_key(nested(5), GgufValueType::array), "nested at most 4 deep");
  EXPECT_PRED2(says_gguf, refused_gguf_key(nested(1'000), GgufValueType::array), "nested at most 4 deep");
  GgufWriter writer;
  writer.key("nested", GgufValueType::array, nested(2)).integer("after", 7);
  const KeptGgufMetadata kept(writer);
  EXPECT_EQ(kept.metadata.integer("after"), 7);
  EXPECT_PRED2(says_gguf, refusal([&] { kept.metadata.integers("nested"); }),
               "got an array of 1 values of the type array");
}

}  // namespace
}  // namespace decodelab
