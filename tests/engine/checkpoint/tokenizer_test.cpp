// Tests of the tokenizer against Hugging Face's (tests/data/tokenizer/make.py), and of what it refuses.
#include "engine/checkpoint/tokenizer.h"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/byte_alphabet.h"
#include "tests/engine/checkpoint/refusal.h"

namespace decodelab {
namespace {

using nlohmann::json;
using Ids = std::vector<std::int64_t>;

const std::filesystem::path kData = std::filesystem::path(DECODELAB_TEST_DATA) / "tokenizer";

json read(const char* name) {
  std::ifstream stream(kData / name);
  return json::parse(stream);
}

// gpt2.json with another value at a JSON pointer.
Tokenizer changed(const std::string& pointer, const json& value) {
  json file = read("gpt2.json");
  file[json::json_pointer(pointer)] = value;
  return Tokenizer::parse(file.dump(), "changed.json");
}

std::string refused(const std::string& pointer, const json& value) {
  return refusal([&] { changed(pointer, value); });
}

class Encoding : public ::testing::TestWithParam<const char*> {};

TEST_P(Encoding, GivesTheIdsOfHuggingFaceAndTheTextBack) {
  const json expected = read("expected.json");
  const Tokenizer tokenizer = Tokenizer::load(kData / GetParam());
  ASSERT_GE(expected.at("files").at(GetParam()).size(), 40u);
  for (const json& row : expected.at("files").at(GetParam())) {
    const auto text = row.at("text").get<std::string>();
    const Ids ids = row.at("ids").get<Ids>();
    EXPECT_EQ(tokenizer.encode(text), ids) << row;
    EXPECT_EQ(tokenizer.decode(ids, false), row.at("decoded").get<std::string>());
    EXPECT_EQ(tokenizer.decode(ids), row.at("decoded_without_special").get<std::string>());
    EXPECT_EQ(tokenizer.decode(ids, false), text);
  }
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, Encoding, ::testing::Values("gpt2.json", "starcoder.json"));

TEST(Tokenizer, GivesTheIdsOfHuggingFaceForEveryPreTokenizer) {
  const json expected = read("expected.json");
  ASSERT_GE(expected.at("variants").size(), 16u);
  for (const json& variant : expected.at("variants")) {
    json file = read("gpt2.json");
    file["pre_tokenizer"] = variant.at("pre_tokenizer");
    file["model"]["ignore_merges"] = variant.value("ignore_merges", false);
    const Tokenizer tokenizer = Tokenizer::parse(file.dump(), "variant.json");
    const json& rows = expected.at("files").at("gpt2.json");
    ASSERT_EQ(variant.at("ids").size(), rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(tokenizer.encode(rows[i].at("text").get<std::string>()), variant.at("ids")[i].get<Ids>())
          << variant.at("name") << ' ' << rows[i].at("text");
    }
  }
}

TEST(Tokenizer, KeepsBytesThatAreNoUtf8) {
  for (const char* name : {"gpt2.json", "starcoder.json"}) {
    const Tokenizer tokenizer = Tokenizer::load(kData / name);
    std::string all;
    for (int byte = 255; byte >= 0; --byte) {
      all += static_cast<char>(byte);
    }
    for (const std::string& text :
         {all, std::string("a\xff b\xc3 c\xe2\x82 12\xf0\x9f\x92"), std::string("\xed\xa0\x80 \xc0\xaf 's\x80's")}) {
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text), false), text);
    }
  }
}

TEST(Tokenizer, TakesLongWordsInReasonableTime) {
  const Tokenizer tokenizer = Tokenizer::load(kData / "gpt2.json");
  const std::string word(200'000, 'e');
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(word)), word);
  const std::string spaces(200'000, ' ');
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(spaces)), spaces);
}

TEST(Tokenizer, CountsUpToTheLargestId) {
  EXPECT_EQ(Tokenizer::load(kData / "gpt2.json").size(), 400);
  EXPECT_EQ(Tokenizer::load(kData / "starcoder.json").size(), 424);
}

TEST(Tokenizer, RefusesIdsItDoesNotHave) {
  const Tokenizer tokenizer = Tokenizer::load(kData / "gpt2.json");
  for (const std::int64_t id : {std::int64_t{400}, std::int64_t{-1}, std::int64_t{1} << 40}) {
    const Ids ids{id};
    EXPECT_NE(refusal([&] { tokenizer.decode(ids); }).find(std::to_string(id)), std::string::npos);
  }
}

TEST(Tokenizer, MayBeMovedAndUsedFromTheNewPlace) {
  Tokenizer first = Tokenizer::load(kData / "gpt2.json");
  const Ids ids = first.encode("Hello world");
  Tokenizer second = std::move(first);
  EXPECT_EQ(second.encode("Hello world"), ids);
}

TEST(Tokenizer, NamesTheKindThatItCannotRead) {
  const auto names = [](const std::string& message, const char* kind) {
    return message.find("changed.json") != std::string::npos && message.find(kind) != std::string::npos &&
           message.find("--prompt-ids") != std::string::npos;
  };
  EXPECT_PRED2(names, refused("/model/type", "Unigram"), "Unigram");
  EXPECT_PRED2(names, refused("/model/type", "WordPiece"), "WordPiece");
  EXPECT_PRED2(names, refused("/pre_tokenizer", {{"type", "BertPreTokenizer"}}), "BertPreTokenizer");
  EXPECT_PRED2(names, refused("/pre_tokenizer", nullptr), "ByteLevel") << "the decoder has bytes";
  EXPECT_PRED2(names, refused("/normalizer", {{"type", "Lowercase"}}), "Lowercase");
  EXPECT_PRED2(names, refused("/decoder", {{"type", "Metaspace"}, {"replacement", "_"}}), "Metaspace");
  EXPECT_PRED2(names, refused("/post_processor", {{"type", "BertProcessing"}}), "BertProcessing");
  EXPECT_PRED2(
      names,
      refused("/pre_tokenizer", {{"type", "Sequence"},
                                 {"pretokenizers", json::array({{{"type", "Digits"}, {"individual_digits", true}}})}}),
      "ByteLevel");
}

TEST(Tokenizer, RefusesOptionsThatWouldChangeTheIds) {
  EXPECT_NE(refused("/model/dropout", 0.1), "");
  EXPECT_EQ(refused("/model/dropout", 0.0), "");
  EXPECT_NE(refused("/model/continuing_subword_prefix", "##"), "");
  EXPECT_EQ(refused("/model/continuing_subword_prefix", ""), "");
  EXPECT_NE(refused("/model/end_of_word_suffix", "</w>"), "");
  EXPECT_NE(refused("/model/byte_fallback", true), "");
  EXPECT_NE(refused("/added_tokens/0/lstrip", true), "");
  EXPECT_NE(refused("/added_tokens/0/rstrip", true), "");
  EXPECT_NE(refused("/added_tokens/0/single_word", true), "");
  EXPECT_NE(refused("/model/ignore_merges", "yes"), "");
  EXPECT_NE(refused("/model/new_option", true), "");
  EXPECT_NE(refused("/new_part", true), "");
  EXPECT_NE(refused("/version", "2.0"), "");
  EXPECT_EQ(refused("/normalizer", {{"type", "Sequence"}, {"normalizers", json::array()}}), "");
}

TEST(Tokenizer, RefusesMalformedParts) {
  EXPECT_NE(refused("/model", 7), "");
  EXPECT_NE(refused("/model/vocab", json::array()), "");
  EXPECT_NE(refused("/model/vocab/zz", 5), "");
  EXPECT_NE(refused("/model/vocab/zz", -5), "");
  EXPECT_NE(refused("/model/vocab/zz", 1.5), "");
  EXPECT_NE(refused("/model/vocab/zz", std::uint64_t{1} << 31), "");
  EXPECT_NE(refused("/model/merges/0", "zq qz"), "");
  EXPECT_NE(refused("/model/merges/0", "e"), "");
  EXPECT_NE(refused("/model/merges/0", "e e e"), "");
  EXPECT_NE(refused("/model/merges/0", json::array({"e"})), "");
  EXPECT_NE(refused("/added_tokens", 7), "");
  EXPECT_NE(refused("/added_tokens/0/id", 3), "");
  EXPECT_NE(refused("/added_tokens/0/content", ""), "");
  json added = read("gpt2.json").at("added_tokens").at(0);
  EXPECT_NE(refused("/added_tokens/1", added), "");
  added["content"] = "<new>";
  for (const int id : {0, 5, 399, 401, 70'000}) {
    added["id"] = id;
    EXPECT_NE(refused("/added_tokens/1", added), "") << id;
  }
  added["id"] = 400;
  EXPECT_EQ(refused("/added_tokens/1", added), "");
  EXPECT_NE(refused("/added_tokens/0/special", 1), "");
  EXPECT_NE(refused("/added_tokens/0", {{"id", 0}, {"content", "<|endoftext|>"}}), "");
  EXPECT_NE(refused("/pre_tokenizer/add_prefix_space", "no"), "");
  const auto sequence = [](const json& first, const json& second) {
    return json{{"type", "Sequence"}, {"pretokenizers", json::array({first, second})}};
  };
  const json bytes{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}};
  const json digits{{"type", "Digits"}, {"individual_digits", true}};
  EXPECT_EQ(refused("/pre_tokenizer", sequence(digits, bytes)), "");
  EXPECT_NE(refused("/pre_tokenizer", sequence(bytes, digits)), "");
  EXPECT_NE(refused("/pre_tokenizer", sequence({{"type", "Digits"}}, bytes)), "");
  for (const char* text : {"", "{", "[]", "{}", R"({"model":{"type":"BPE"}})", "{\"\xff\":1}"}) {
    EXPECT_NE(refusal([&] { Tokenizer::parse(text, "x.json"); }).find("x.json"), std::string::npos) << text;
  }
  EXPECT_NE(refusal([] { Tokenizer::load("/nowhere/tokenizer.json"); }).find("/nowhere/tokenizer.json"),
            std::string::npos);
}

/// A BPE of characters in the manner of Llama 2, with `change` at a JSON pointer.
Tokenizer of_characters(const std::string& pointer = "/version", const json& change = "1.0") {
  json file = json::parse(R"({"version": "1.0",
    "added_tokens": [{"id": 1, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
    "pre_tokenizer": null,
    "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                       "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
    "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
                                                 {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
              "vocab": {"<unk>": 0, "<s>": 1, "<0xC3>": 2, "<0xA9>": 3, "▁": 4, "a": 5, "b": 6, "▁a": 7}, "merges": ["▁ a"]}})");
  file[json::json_pointer(pointer)] = change;
  return Tokenizer::parse(file.dump(), "characters.json");
}

TEST(Tokenizer, SpellsWhatHasNoTokenInBytesOrCallsItUnknown) {
  EXPECT_EQ(of_characters().encode("a é"), (Ids{7, 4, 2, 3}));
  EXPECT_EQ(of_characters().encode("axybÿ"), (Ids{7, 0, 6, 0}));
  EXPECT_EQ(of_characters("/model/fuse_unk", false).encode("axyb"), (Ids{7, 0, 0, 6}));
  EXPECT_EQ(of_characters("/model/byte_fallback", false).encode("a é"), (Ids{7, 4, 0}));
  const std::string message = refusal([] { of_characters("/model/unk_token", nullptr).encode("a x"); });
  EXPECT_NE(message.find("'x'"), std::string::npos) << message;
}

TEST(Tokenizer, KeepsTheSpaceOfTheFirstWordOnlyBehindAnotherText) {
  const Tokenizer tokenizer = of_characters();
  const Ids ids = tokenizer.encode("a b");
  EXPECT_EQ(tokenizer.decode(ids), "a b");
  EXPECT_EQ(tokenizer.decode_further(ids), " a b");
  EXPECT_EQ(tokenizer.decode(Ids{1, 7}), "a") << "special tokens are left out first";
}

TEST(Tokenizer, NamesTheTokensAroundAPrompt) {
  EXPECT_EQ(of_characters().prompt_affixes().before, Ids{1});
  EXPECT_TRUE(of_characters().prompt_affixes().behind.empty());
  EXPECT_TRUE(Tokenizer::load(kData / "gpt2.json").prompt_affixes().before.empty());
  for (const json& single : {json::array(), json::array({{{"SpecialToken", {{"id", "<s>"}}}}}),
                             json::array({{{"SpecialToken", {{"id", "<x>"}}}}, {{"Sequence", {{"id", "A"}}}}})}) {
    EXPECT_NE(refusal([&] { of_characters("/post_processor/single", single); }).find("post_processor"),
              std::string::npos)
        << single;
  }
}

TEST(Tokenizer, RefusesPiecesThatMeanNothing) {
  const auto message = [](const json& model) { return refusal([&] { of_characters("/model", model); }); };
  const json pieces = json::array({json::array({"<unk>", 0}), json::array({"<s>", 0}), json::array({"a", -1.5})});
  EXPECT_EQ(message({{"type", "Unigram"}, {"unk_id", 0}, {"vocab", pieces}}), "");
  EXPECT_NE(message({{"type", "Unigram"}, {"unk_id", 3}, {"vocab", pieces}}), "");
  EXPECT_NE(message({{"type", "Unigram"}, {"vocab", pieces}}), "");
  EXPECT_NE(message({{"type", "Unigram"}, {"unk_id", nullptr}, {"vocab", pieces}}), "");
  EXPECT_NE(message({{"type", "Unigram"}, {"unk_id", 0}, {"vocab", json::array({7})}}), "");
  EXPECT_NE(message({{"type", "Unigram"}, {"unk_id", 0}, {"vocab", json::array()}}), "");
  EXPECT_NE(message({{"type", "Unigram"}, {"unk_id", 0}, {"vocab", pieces}, {"alpha", 0.1}}), "");
}

TEST(Tokenizer, SaysWhichByteHasNoToken) {
  json file = read("gpt2.json");
  file["model"]["merges"] = json::array();
  file["model"]["vocab"].erase("z");
  const Tokenizer tokenizer = Tokenizer::parse(file.dump(), "changed.json");
  EXPECT_NE(refusal([&] { tokenizer.encode("a z"); }).find("0x7a"), std::string::npos);
  EXPECT_EQ(tokenizer.encode("a").size(), 1u);
}

TEST(ByteAlphabet, IsABijectionOfAllBytes) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all += static_cast<char>(byte);
  }
  EXPECT_EQ(from_byte_alphabet(to_byte_alphabet(all)), all);
  EXPECT_EQ(to_byte_alphabet(" \n!~\x7f\xad"), "ĠĊ!~ġŃ");
  for (const char* text : {" ", "\n", "\xc2\xad", "\xc5\x84", "模", "\xc3", "\xff", "\xc0\x80"}) {
    EXPECT_FALSE(from_byte_alphabet(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace decodelab
