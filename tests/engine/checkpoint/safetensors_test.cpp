// Tests of the header check of safetensors files: what is read, and every kind of file that is refused.
#include "engine/checkpoint/safetensors.h"

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/checkpoint/refusal.h"

namespace decodelab {
namespace {

// A file with this header and `data_bytes` bytes 0, 1, 2, ...
std::vector<std::byte> file_of(std::string_view header, std::size_t data_bytes) {
  std::vector<std::byte> file;
  for (int i = 0; i < 8; ++i) {
    file.push_back(static_cast<std::byte>(header.size() >> (8 * i)));
  }
  for (const char c : header) {
    file.push_back(static_cast<std::byte>(c));
  }
  for (std::size_t i = 0; i < data_bytes; ++i) {
    file.push_back(static_cast<std::byte>(i));
  }
  return file;
}

std::string refused(std::string_view header, std::size_t data_bytes) {
  const auto file = file_of(header, data_bytes);
  return refusal([&] { parse_safetensors(file, "x.safetensors"); });
}

TEST(Safetensors, ReadsNamesTypesShapesAndBytes) {
  const auto file =
      file_of(R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
              R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}   )",
              16);
  const auto tensors = parse_safetensors(file, "x.safetensors");
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors.at("a").shape, std::vector<std::int64_t>{});
  EXPECT_EQ(tensors.at("a").data.data(), file.data() + file.size() - 16);
  EXPECT_EQ(tensors.at("a").element_type("a"), ElementType::float32);
  EXPECT_EQ(tensors.at("b").shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(tensors.at("b").data.size(), 12u);
  EXPECT_EQ(tensors.at("b").data.front(), std::byte{4});
  EXPECT_EQ(tensors.at("b").element_type("b"), ElementType::bfloat16);
}

TEST(Safetensors, TakesTensorsWithoutElements) {
  const auto file = file_of(
      R"({"e":{"dtype":"F16","shape":[3,0],"data_offsets":[2,2]},"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}})",
      2);
  const auto tensors = parse_safetensors(file, "x.safetensors");
  EXPECT_TRUE(tensors.at("e").data.empty());
  EXPECT_TRUE(parse_safetensors(file_of("{}", 0), "x.safetensors").empty());
}

TEST(Safetensors, ListsOtherTypesAndRefusesThemOnUse) {
  const auto file = file_of(
      R"({"i":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},"q":{"dtype":"F4","shape":[2],"data_offsets":[8,9]}})",
      9);
  const auto tensors = parse_safetensors(file, "x.safetensors");
  EXPECT_EQ(tensors.at("i").dtype, "I64");
  const std::string message = refusal([&] { tensors.at("i").element_type("i"); });
  EXPECT_NE(message.find("'i'"), std::string::npos) << message;
  EXPECT_NE(message.find("I64"), std::string::npos) << message;
}

TEST(Safetensors, RefusesAFileShorterThanItsHeaderSays) {
  EXPECT_NE(refusal([] { parse_safetensors({}, "x.safetensors"); }), "");
  auto file = file_of("{}", 0);
  file.pop_back();
  const std::string message = refusal([&] { parse_safetensors(file, "x.safetensors"); });
  EXPECT_NE(message.find("x.safetensors"), std::string::npos) << message;
  EXPECT_NE(message.find("cut short"), std::string::npos) << message;
}

TEST(Safetensors, RefusesAHeaderLengthThatOverflows) {
  std::vector<std::byte> file(64, std::byte{0xff});
  EXPECT_NE(refusal([&] { parse_safetensors(file, "x.safetensors"); }), "");
}

TEST(Safetensors, RefusesAHeaderThatIsNoPlainJsonObject) {
  EXPECT_NE(refused("", 0), "");
  EXPECT_NE(refused("[]", 0), "");
  EXPECT_NE(refused(" {}", 0), "");
  EXPECT_NE(refused("{", 0), "");
  EXPECT_NE(refused("{} x", 0), "");
  EXPECT_NE(refused("{\"\xff\":1}", 0), "");
  EXPECT_NE(refused(std::string_view("{}\0", 3), 0), "");
  EXPECT_NE(refused(std::string_view("{}\0hidden", 9), 0), "");
  EXPECT_NE(refused(R"({"a":1e999})", 0), "");
  EXPECT_NE(refused(R"({"a":)" + std::string(100, '[') + std::string(100, ']') + "}", 0), "");
  EXPECT_NE(refused(R"({"__metadata__":{"a":1}})", 0), "");
}

TEST(Safetensors, RefusesATensorThatStandsTwice) {
  const std::string message = refused(
      R"({"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]},"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}})",
      2);
  EXPECT_NE(message.find("twice"), std::string::npos) << message;
  EXPECT_NE(refused(R"({"a":{"dtype":"F16","dtype":"F16","shape":[1],"data_offsets":[0,2]}})", 2), "");
}

// Every row is one tensor entry that must not pass on a file with four data bytes.
class BadEntry : public ::testing::TestWithParam<const char*> {};

TEST_P(BadEntry, IsRefusedWithTheNamesOfFileAndTensor) {
  const std::string message = refused(std::string(R"({"weight":)") + GetParam() + "}", 4);
  EXPECT_NE(message.find("x.safetensors"), std::string::npos) << message;
  EXPECT_NE(message.find("'weight'"), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Safetensors, BadEntry,
    ::testing::Values(
        "7", "[]", "{}", R"({"shape":[1],"data_offsets":[0,4]})", R"({"dtype":"F32","data_offsets":[0,4]})",
        R"({"dtype":"F32","shape":[1]})", R"({"dtype":7,"shape":[1],"data_offsets":[0,4]})",
        R"({"dtype":"F31","shape":[1],"data_offsets":[0,4]})", R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})",
        R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})", R"({"dtype":"F32","shape":[1.0],"data_offsets":[0,4]})",
        R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})", R"({"dtype":"F16","shape":[1],"data_offsets":[0,4]})",
        R"({"dtype":"F32","shape":[1],"data_offsets":[0]})", R"({"dtype":"F32","shape":[1],"data_offsets":[0,4,8]})",
        R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})", R"({"dtype":"F32","shape":[1],"data_offsets":[-4,0]})",
        R"({"dtype":"F32","shape":[1],"data_offsets":[1,5]})", R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})",
        R"({"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4]})",
        R"({"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]})",
        R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})",
        R"({"dtype":"F4","shape":[3],"data_offsets":[0,1]})",
        R"({"dtype":"F32","shape":[0],"data_offsets":[18446744073709551615,18446744073709551615]})"));

TEST(Safetensors, RefusesOverlapHolesAndBytesOfNoTensor) {
  const char* overlap =
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})";
  EXPECT_NE(refused(overlap, 6).find("overlap"), std::string::npos);
  const char* same =
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  EXPECT_NE(refused(same, 4).find("overlap"), std::string::npos);
  const char* hole =
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[6,10]}})";
  EXPECT_NE(refused(hole, 10).find("hole"), std::string::npos);
  const char* rest = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  EXPECT_NE(refused(rest, 5).find("no tensor"), std::string::npos);
}

TEST(Safetensors, ShowsNamesOfHostileFilesAsPrintableText) {
  const std::string message = refused(R"({"\u001b[31m":1})", 0);
  EXPECT_EQ(message.find('\x1b'), std::string::npos) << message;
  EXPECT_NE(message.find("\\x1b"), std::string::npos) << message;
}

TEST(Safetensors, KnowsTheSizeOfEveryElementType) {
  EXPECT_EQ(element_bytes(ElementType::float32), 4u);
  EXPECT_EQ(element_bytes(ElementType::float16), 2u);
  EXPECT_EQ(element_bytes(ElementType::bfloat16), 2u);
}

}  // namespace
}  // namespace decodelab
