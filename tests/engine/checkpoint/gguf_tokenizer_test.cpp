// Tests of the tokenizers in GGUF files: ids as Hugging Face's tokenizers give them, and what is refused.
#include "engine/checkpoint/gguf_tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/byte_alphabet.h"
#include "engine/checkpoint/gguf.h"
#include "tests/engine/checkpoint/gguf_writer.h"
#include "tests/engine/checkpoint/refusal.h"

namespace decodelab {
namespace {

using nlohmann::json;

json gguf_test_data(const std::string& name) {
  std::ifstream stream(std::filesystem::path(DECODELAB_TEST_DATA) / "tokenizer" / name);
  return json::parse(stream);
}

// What stands in a file; a test changes it before it is written.
struct GgufVocabulary {
  std::string model = "gpt2";
  std::string pre = "gpt-2";
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  std::vector<std::string> merges;

  void add(const std::string& token, std::int32_t type = 1) {
    tokens.push_back(token);
    types.push_back(type);
  }
  std::int64_t id(std::string_view token) const { return std::ranges::find(tokens, token) - tokens.begin(); }

  GgufWriter writer() const {
    GgufWriter writer;
    writer.text("tokenizer.ggml.model", model).text("tokenizer.ggml.pre", pre).texts("tokenizer.ggml.tokens", tokens);
    writer.integers("tokenizer.ggml.token_type", types).texts("tokenizer.ggml.merges", merges);
    return writer;
  }
};

GgufTokenizer gguf_tokenizer_of(const GgufWriter& writer) {
  const auto bytes = gguf_copy(writer.file());
  return read_gguf_tokenizer(parse_gguf(bytes, "x.gguf").metadata);
}

// A tokenizer.json of the test data as a converter would write it.
GgufVocabulary gguf_vocabulary_of(const json& file, const std::string& pre) {
  GgufVocabulary vocabulary{.pre = pre};
  vocabulary.tokens.resize(file.at("model").at("vocab").size());
  vocabulary.types.resize(vocabulary.tokens.size(), 1);
  for (const auto& [token, id] : file.at("model").at("vocab").items()) {
    vocabulary.tokens.at(id.get<std::size_t>()) = token;
  }
  for (const json& token : file.at("added_tokens")) {
    const auto id = token.at("id").get<std::size_t>();
    vocabulary.tokens.resize(std::max(vocabulary.tokens.size(), id + 1));
    vocabulary.types.resize(vocabulary.tokens.size());
    vocabulary.tokens[id] = token.at("content").get<std::string>();
    vocabulary.types[id] = token.at("special").get<bool>() ? 3 : 4;
  }
  for (const json& merge : file.at("model").at("merges")) {
    vocabulary.merges.push_back(merge.is_string() ? merge.get<std::string>()
                                                  : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  return vocabulary;
}

struct GgufExpectation {
  const char* pre;
  const char* file;
};

class GgufIds : public ::testing::TestWithParam<GgufExpectation> {};

TEST_P(GgufIds, GivesTheIdsOfHuggingFaceAndTheTextBack) {
  const auto& [pre, file] = GetParam();
  const GgufTokenizer read = gguf_tokenizer_of(gguf_vocabulary_of(gguf_test_data(file), pre).writer());
  const json rows = gguf_test_data("expected.json").at("files").at(file);
  ASSERT_GE(rows.size(), 40u);
  for (const json& row : rows) {
    const auto ids = row.at("ids").get<std::vector<std::int64_t>>();
    EXPECT_EQ(read.tokenizer.encode(row.at("text").get<std::string>()), ids) << row;
    EXPECT_EQ(read.tokenizer.decode(ids, false), row.at("decoded").get<std::string>());
    EXPECT_EQ(read.tokenizer.decode(ids), row.at("decoded_without_special").get<std::string>());
  }
}

INSTANTIATE_TEST_SUITE_P(GgufTokenizer, GgufIds,
                         ::testing::Values(GgufExpectation{"gpt-2", "gpt2.json"},
                                           GgufExpectation{"starcoder", "starcoder.json"},
                                           GgufExpectation{"refact", "starcoder.json"},
                                           GgufExpectation{"smollm", "starcoder.json"}));

TEST(GgufTokenizer, GivesTheIdsOfHuggingFaceForLlama3) {
  const json file = gguf_test_data("gpt2.json");
  const json expected = gguf_test_data("expected.json");
  const auto variant = std::ranges::find_if(
      expected.at("variants"), [](const json& each) { return each.at("name") == "gpt-4 pattern, merges ignored"; });
  ASSERT_NE(variant, expected.at("variants").end());
  const json& rows = expected.at("files").at("gpt2.json");
  for (const char* pre : {"llama-bpe", "llama3", "llama-v3"}) {
    const GgufTokenizer read = gguf_tokenizer_of(gguf_vocabulary_of(file, pre).writer());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(read.tokenizer.encode(rows[i].at("text").get<std::string>()),
                variant->at("ids")[i].get<std::vector<std::int64_t>>())
          << pre << ' ' << rows[i].at("text");
    }
  }
}

// All bytes, and merges over which the ways to cut a text differ.
GgufVocabulary small_gguf_vocabulary(const std::string& pre) {
  GgufVocabulary vocabulary{.pre = pre};
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.add(to_byte_alphabet(std::string(1, static_cast<char>(byte))));
  }
  vocabulary.merges = {"1 2", "12 3", "123 4", "' L", "'L L", "Ġ 1", "a b"};
  for (const char* token : {"12", "123", "1234", "'L", "'LL", "Ġ1", "ab", "whole"}) {
    vocabulary.add(token);
  }
  vocabulary.add("<|im_start|>", 3);
  vocabulary.add("<tool>", 4);
  vocabulary.add("<plain>");
  vocabulary.add("[PAD0]", 5);
  return vocabulary;
}

std::vector<std::string> gguf_pieces(const GgufVocabulary& vocabulary, std::string_view text) {
  std::vector<std::string> pieces;
  for (const std::int64_t id : gguf_tokenizer_of(vocabulary.writer()).tokenizer.encode(text)) {
    pieces.push_back(vocabulary.tokens.at(static_cast<std::size_t>(id)));
  }
  return pieces;
}

TEST(GgufTokenizer, CutsDigitsAndContractionsAsEachModelDoes) {
  using Pieces = std::vector<std::string>;
  const Pieces single{"Ġ", "1", "2", "3", "4", "'", "L", "L"};
  EXPECT_EQ(gguf_pieces(small_gguf_vocabulary("gpt-2"), " 1234'LL"), (Pieces{"Ġ", "1234", "'", "L", "L"}));
  EXPECT_EQ(gguf_pieces(small_gguf_vocabulary("smollm"), " 1234'LL"), single);
  EXPECT_EQ(gguf_pieces(small_gguf_vocabulary("starcoder"), " 1234'LL"), single);
  EXPECT_EQ(gguf_pieces(small_gguf_vocabulary("llama-bpe"), " 1234'LL"), (Pieces{"Ġ", "123", "4", "'LL"}));
  EXPECT_EQ(gguf_pieces(small_gguf_vocabulary("qwen2"), " 1234'LL"), (Pieces{"Ġ", "1", "2", "3", "4", "'LL"}));
}

TEST(GgufTokenizer, BringsTextsIntoANormalFormForQwenOnly) {
  const auto pieces = [](const char* pre, const char* text) { return gguf_pieces(small_gguf_vocabulary(pre), text); };
  EXPECT_EQ(pieces("qwen2", "e\u0301"), pieces("qwen2", "\u00e9"));
  EXPECT_NE(pieces("gpt-2", "e\u0301"), pieces("gpt-2", "\u00e9"));
}

TEST(GgufTokenizer, TakesAWholeWordWithoutMergesForLlama3Only) {
  EXPECT_EQ(gguf_pieces(small_gguf_vocabulary("llama-bpe"), "whole").size(), 1u);
  EXPECT_EQ(gguf_pieces(small_gguf_vocabulary("qwen2"), "whole").size(), 5u);
  EXPECT_EQ(gguf_pieces(small_gguf_vocabulary("smollm"), "whole").size(), 5u);
}

TEST(GgufTokenizer, MatchesControlAndUserDefinedTokensFirst) {
  const GgufVocabulary vocabulary = small_gguf_vocabulary("smollm");
  EXPECT_EQ(gguf_pieces(vocabulary, "ab<|im_start|>ab<tool>"),
            (std::vector<std::string>{"ab", "<|im_start|>", "ab", "<tool>"}));
  EXPECT_EQ(gguf_pieces(vocabulary, "<plain>").size(), 7u);
  EXPECT_EQ(gguf_pieces(vocabulary, "[PAD0]").size(), 6u);
  const GgufTokenizer read = gguf_tokenizer_of(vocabulary.writer());
  const std::vector<std::int64_t> ids{vocabulary.id("<|im_start|>"), vocabulary.id("<tool>"), vocabulary.id("ab"),
                                      vocabulary.id("[PAD0]")};
  EXPECT_EQ(read.tokenizer.decode(ids), "<tool>ab[PAD0]");
  EXPECT_EQ(read.tokenizer.decode(ids, false), "<|im_start|><tool>ab[PAD0]");
  EXPECT_EQ(read.tokenizer.size(), static_cast<std::int64_t>(vocabulary.tokens.size()));
}

TEST(GgufTokenizer, ReadsIdsAndTheChatTemplate) {
  const GgufVocabulary vocabulary = small_gguf_vocabulary("smollm");
  GgufWriter writer = vocabulary.writer();
  const GgufTokenizer without = gguf_tokenizer_of(writer);
  EXPECT_EQ(without.bos_token_id, -1);
  EXPECT_EQ(without.eos_token_id, -1);
  EXPECT_FALSE(without.add_bos_token);
  EXPECT_EQ(without.chat_template, "");
  writer.integer("tokenizer.ggml.bos_token_id", 256).integer("tokenizer.ggml.eos_token_id", 0);
  writer.boolean("tokenizer.ggml.add_bos_token", true).boolean("tokenizer.ggml.add_space_prefix", false);
  writer.text("tokenizer.chat_template", "{{ messages }}");
  const GgufTokenizer with = gguf_tokenizer_of(writer);
  EXPECT_EQ(with.bos_token_id, 256);
  EXPECT_EQ(with.eos_token_id, 0);
  EXPECT_TRUE(with.add_bos_token);
  EXPECT_EQ(with.chat_template, "{{ messages }}");
}

TEST(GgufTokenizer, BeginsPromptsOfLlama3WithBosUnlessTheFileSaysNo) {
  GgufWriter writer = small_gguf_vocabulary("llama-bpe").writer();
  EXPECT_TRUE(gguf_tokenizer_of(writer).add_bos_token);
  writer.boolean("tokenizer.ggml.add_bos_token", false);
  EXPECT_FALSE(gguf_tokenizer_of(writer).add_bos_token);
}

std::string refused_gguf_tokenizer(const GgufWriter& writer) {
  return refusal([&] { gguf_tokenizer_of(writer); });
}

bool says_about_gguf_tokenizer(const std::string& message, std::string_view part) {
  return message.find("x.gguf") != std::string::npos && message.find("--prompt-ids") != std::string::npos &&
         message.find(part) != std::string::npos;
}

TEST(GgufTokenizer, NamesTheKindThatItCannotRead) {
  for (const char* model : {"bert", "t5", "rwkv"}) {
    GgufWriter writer;
    writer.text("tokenizer.ggml.model", model);
    EXPECT_PRED2(says_about_gguf_tokenizer, refused_gguf_tokenizer(writer),
                 "'tokenizer.ggml.model': expected 'gpt2' (byte-level BPE) or 'llama' (pieces with scores), got '" +
                     std::string(model) + "'");
  }
  for (const char* pre : {"default", "tekken", "deepseek-llm", ""}) {
    const std::string message = refused_gguf_tokenizer(small_gguf_vocabulary(pre).writer());
    EXPECT_PRED2(says_about_gguf_tokenizer, message, "expected one of smollm, starcoder, ");
    EXPECT_PRED2(says_about_gguf_tokenizer, message, "got '" + std::string(pre) + "'");
  }
}

TEST(GgufTokenizer, NamesAKeyThatIsMissing) {
  const GgufVocabulary small = small_gguf_vocabulary("smollm");
  GgufWriter writer;
  EXPECT_PRED2(says_about_gguf_tokenizer, refused_gguf_tokenizer(writer), "'tokenizer.ggml.model'");
  writer.text("tokenizer.ggml.model", small.model);
  EXPECT_PRED2(says_about_gguf_tokenizer, refused_gguf_tokenizer(writer), "'tokenizer.ggml.pre'");
  writer.text("tokenizer.ggml.pre", small.pre);
  EXPECT_PRED2(says_about_gguf_tokenizer, refused_gguf_tokenizer(writer), "'tokenizer.ggml.tokens'");
  writer.texts("tokenizer.ggml.tokens", small.tokens);
  EXPECT_PRED2(says_about_gguf_tokenizer, refused_gguf_tokenizer(writer), "'tokenizer.ggml.token_type'");
  writer.integers("tokenizer.ggml.token_type", small.types);
  EXPECT_PRED2(says_about_gguf_tokenizer, refused_gguf_tokenizer(writer), "'tokenizer.ggml.merges'");
  writer.texts("tokenizer.ggml.merges", small.merges);
  EXPECT_EQ(refused_gguf_tokenizer(writer), "");
}

TEST(GgufTokenizer, RefusesTokensThatStandTwiceOrAreNoText) {
  GgufVocabulary twice = small_gguf_vocabulary("smollm");
  twice.add("ab");
  EXPECT_PRED2(says_about_gguf_tokenizer, refused_gguf_tokenizer(twice.writer()), "every token once, got 'ab' twice");
  GgufVocabulary bytes = small_gguf_vocabulary("smollm");
  bytes.add("\xff");
  EXPECT_PRED2(says_about_gguf_tokenizer, refused_gguf_tokenizer(bytes.writer()), "in UTF-8");
}

TEST(GgufTokenizer, RefusesTokenTypesThatDoNotMatchTheTokens) {
  GgufVocabulary vocabulary = small_gguf_vocabulary("smollm");
  vocabulary.types.pop_back();
  EXPECT_PRED2(says_about_gguf_tokenizer, refused_gguf_tokenizer(vocabulary.writer()),
               "expected 268 types, one for each token, got 267");
  for (const std::int32_t type : {0, 2, 6, 7, -1}) {
    vocabulary = small_gguf_vocabulary("smollm");
    vocabulary.types.back() = type;
    const bool known = type == 2 || type == 6;
    EXPECT_PRED2(says_about_gguf_tokenizer, refused_gguf_tokenizer(vocabulary.writer()),
                 "got " + std::to_string(type) + (known ? " for the token '[PAD0]'" : ""));
  }
}

/// Pieces with scores in the manner of Llama 2: `ab` is better than `bc`.
GgufWriter pieces_writer(std::vector<std::string> tokens = {"<unk>", "<s>", "<0xC3>", "<0xA9>", "▁", "a", "b", "c",
                                                            "ab", "bc", "▁ab"},
                         std::vector<float> scores = {0, 0, 0, 0, -9, -8, -8, -8, -1, -2, -3}) {
  std::vector<std::int32_t> types(tokens.size(), 1);
  std::ranges::copy(std::vector<std::int32_t>{2, 3, 6, 6}, types.begin());
  GgufWriter writer;
  writer.text("tokenizer.ggml.model", "llama").texts("tokenizer.ggml.tokens", tokens);
  writer.integers("tokenizer.ggml.token_type", types).floats("tokenizer.ggml.scores", scores);
  writer.integer("tokenizer.ggml.bos_token_id", 1);
  return writer;
}

TEST(GgufTokenizer, MergesThePairOfPiecesWithTheBestScoreFirst) {
  using Ids = std::vector<std::int64_t>;
  const GgufTokenizer read = gguf_tokenizer_of(pieces_writer());
  EXPECT_EQ(read.tokenizer.encode("abc"), (Ids{10, 7}));
  EXPECT_EQ(read.tokenizer.encode("c abc<s>é?"), (Ids{4, 7, 10, 7, 1, 4, 2, 3, 0}));
  EXPECT_EQ(read.tokenizer.decode(Ids{10, 7}), "abc");
  EXPECT_EQ(read.tokenizer.decode_further(Ids{10, 7}), " abc");
  EXPECT_TRUE(read.add_bos_token) << "where the file does not say";
  const GgufTokenizer without = gguf_tokenizer_of(pieces_writer().boolean("tokenizer.ggml.add_space_prefix", false));
  EXPECT_EQ(without.tokenizer.encode("abc ab"), (Ids{8, 7, 10}));
}

TEST(GgufTokenizer, RefusesPiecesWithoutScoresThatAreNumbers) {
  const std::vector<std::string> tokens{"<unk>", "<s>", "<0xC3>", "<0xA9>", "a"};
  EXPECT_EQ(refused_gguf_tokenizer(pieces_writer(tokens, {0, 0, 0, 0, -1})), "");
  EXPECT_PRED2(says_about_gguf_tokenizer, refused_gguf_tokenizer(pieces_writer(tokens, {0, 0, 0, -1})), "5 scores");
  EXPECT_PRED2(says_about_gguf_tokenizer, refused_gguf_tokenizer(pieces_writer(tokens, {0, 0, 0, 0, NAN})),
               "expected numbers");
  EXPECT_PRED2(says_about_gguf_tokenizer,
               refused_gguf_tokenizer(
                   pieces_writer({"<unk>", "<s>", "<0xC3>", "<0xA9>", std::string(2000, 'a')}, {0, 0, 0, 0, -1})),
               "got one of 2000");
}

TEST(GgufTokenizer, RefusesIdsThatAreNoToken) {
  const GgufWriter small = small_gguf_vocabulary("smollm").writer();
  for (const char* key : {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"}) {
    GgufWriter last = small;
    EXPECT_EQ(refused_gguf_tokenizer(last.integer(key, 267)), "");
    GgufWriter beyond = small;
    EXPECT_PRED2(says_about_gguf_tokenizer, refused_gguf_tokenizer(beyond.integer(key, 268)),
                 "expected an id of the 268 tokens, got 268");
    GgufWriter negative = small;
    negative.key(key, GgufValueType::int32, gguf_bytes(std::int32_t{-1}));
    EXPECT_PRED2(says_about_gguf_tokenizer, refused_gguf_tokenizer(negative), "got -1");
  }
}

TEST(GgufTokenizer, RefusesASpaceBeforeThePromptAndBrokenMerges) {
  GgufWriter writer = small_gguf_vocabulary("smollm").writer();
  EXPECT_PRED2(says_about_gguf_tokenizer,
               refused_gguf_tokenizer(writer.boolean("tokenizer.ggml.add_space_prefix", true)),
               "'tokenizer.ggml.add_space_prefix': expected false, got true");
  GgufVocabulary vocabulary = small_gguf_vocabulary("smollm");
  vocabulary.merges.emplace_back("a z");
  const std::string message = refused_gguf_tokenizer(vocabulary.writer());
  EXPECT_NE(message.find("x.gguf"), std::string::npos) << message;
  EXPECT_NE(message.find("'az'"), std::string::npos) << message;
}

}  // namespace
}  // namespace decodelab
