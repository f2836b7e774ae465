// Feeds damaged files to every reader of the folder: each must be read or refused, and nothing outside be touched.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/checkpoint/chat_template.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/synthetic.h"
#include "engine/checkpoint/tokenizer.h"
#include "tests/engine/checkpoint/mutator.h"
#include "tests/engine/checkpoint/precompiled_table.h"

namespace decodelab {
namespace {

constexpr std::string_view kHeader =
    R"({"__metadata__":{"format":"pt"},"wte.weight":{"dtype":"BF16","shape":[4,8],"data_offsets":[0,64]},)"
    R"("h.0.bias":{"dtype":"F32","shape":[3],"data_offsets":[64,76]},"none":{"dtype":"F16","shape":[0,7],"data_offsets":[76,76]},)"
    R"("mask":{"dtype":"BOOL","shape":[],"data_offsets":[76,77]}}   )";
constexpr std::size_t kDataBytes = 77;

std::string with_length(const std::string& header) {
  std::string file;
  for (int i = 0; i < 8; ++i) {
    file += static_cast<char>(header.size() >> (8 * i));
  }
  return file + header;
}

// Reads both ends of every tensor from a buffer of exactly the file's size, so that a sanitizer sees a step beyond it.
void read_safetensors(const std::string& file) {
  std::vector<std::byte> buffer(file.size());
  std::transform(file.begin(), file.end(), buffer.begin(), [](char c) { return static_cast<std::byte>(c); });
  unsigned sum = 0;
  for (const auto& [name, tensor] : parse_safetensors(buffer, "fuzz.safetensors")) {
    const auto begin = static_cast<std::size_t>(tensor.data.data() - buffer.data());
    ASSERT_LE(begin, buffer.size()) << name;
    ASSERT_LE(tensor.data.size(), buffer.size() - begin) << name;
    if (!tensor.data.empty()) {
      sum += std::to_integer<unsigned>(tensor.data.front()) + std::to_integer<unsigned>(tensor.data.back());
    }
  }
  ASSERT_LT(sum, 1u << 31);
}

TEST(Fuzz, SafetensorsAreReadOrRefused) {
  const std::string data(kDataBytes, 'd');
  fuzz(std::string(kHeader), [&](const std::string& header, Mutator& mutator) {
    // Half of the damage anywhere in the file, half in the header alone, with a length that fits.
    if (mutator.below(2) == 0) {
      read_safetensors(mutator.mutate(with_length(header) + data));
    } else {
      read_safetensors(with_length(mutator.mutate(header)) + data);
    }
  });
}

TEST(Fuzz, IndexesAreReadOrRefused) {
  const std::string index =
      R"({"metadata":{"total_size":1234},"weight_map":{"a.weight":"model-00001-of-00002.safetensors",)"
      R"("b.weight":"model-00002-of-00002.safetensors","c":"model-00001-of-00002.safetensors"}})";
  fuzz(index, [](const std::string& file, Mutator& mutator) {
    for (const auto& [tensor, shard] : parse_safetensors_index(mutator.mutate(file), "index.json")) {
      ASSERT_EQ(shard.find('/'), std::string::npos);
      ASSERT_EQ(shard.find(".."), std::string::npos);
    }
  });
}

TEST(Fuzz, ModelConfigsAreReadOrRefused) {
  const ModelConfig config{.family = "gpt_bigcode",
                           .layers = 24,
                           .hidden_size = 2048,
                           .heads = 16,
                           .kv_heads = 1,
                           .head_dim = 128,
                           .intermediate_size = 8192,
                           .vocabulary_size = 49280,
                           .positions = 2048,
                           .eos_token_id = 49152};
  fuzz(config_json(config), [](const std::string& file, Mutator& mutator) {
    const ModelConfig read = parse_model_config(mutator.mutate(file), "config.json");
    ASSERT_EQ(read.heads * read.head_dim, read.hidden_size);
    ASSERT_GT(parameter_count(read), 0);
    ASSERT_LT(read.eos_token_id, read.vocabulary_size);
  });
}

TEST(Fuzz, ModelConfigsOfEveryFamilyAreReadOrRefused) {
  std::vector<std::string> files;
  for (const std::string& name : synthetic_names()) {
    files.push_back(config_json(*synthetic_config(name)));
  }
  constexpr std::int64_t kLayersToList = 100;  // More would only take longer.
  fuzz("", [&](const std::string&, Mutator& mutator) {
    const ModelConfig read = parse_model_config(mutator.mutate(files[mutator.below(files.size())]), "config.json");
    ASSERT_EQ(read.heads % read.kv_heads, 0);
    ASSERT_TRUE(read.recipes.empty() || std::ssize(read.recipes) == read.layers);
    for (const LayerRecipe& recipe : read.recipes) {
      ASSERT_LT(recipe.rotary, std::ssize(read.rotary));
      ASSERT_GE(recipe.window, 0);
    }
    ASSERT_TRUE(std::isfinite(read.attention_scale()));
    if (read.layers + (read.encoder ? read.encoder->layers : 0) <= kLayersToList) {
      ASSERT_GT(parameter_count(read), 0);
    }
  });
}

TEST(Fuzz, ChatTemplatesAreRenderedOrRefused) {
  const std::string whole =
      "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n' + "
      "bos_token + 'You help.<|im_end|>\n' }}{% endif %}{% set content = message['content'] | trim %}{{- "
      "'<|im_start|>' "
      "+ message.role + '\n' + content + '<|im_end|>' ~ '\n' -}}{% endfor %}\n{% if add_generation_prompt and not "
      "(messages | length == 0) %}{{ '<|im_start|>assistant\n' }}{% else %}{{ eos_token }}{% endif %}";
  const std::vector<ChatMessage> messages{{.role = "user", .content = "Hello"},
                                          {.role = "assistant", .content = " x "}};
  const auto rendered = [&](std::string text) {
    return ChatTemplate{.text = std::move(text), .bos_token = "<s>", .eos_token = "</s>", .file_name = "chat.jinja"}
        .render(messages);
  };
  ASSERT_NE(rendered(whole).find("Hello"), std::string::npos);
  fuzz(whole, [&](const std::string& file, Mutator& mutator) { rendered(mutator.mutate(file)); });
}

/// Reads broken copies of a tokenizer.json, and lets those that can be read encode and decode.
void fuzz_tokenizer(const std::string& tokenizer, const std::string& text) {
  fuzz(tokenizer, [&](const std::string& file, Mutator& mutator) {
    const Tokenizer read = Tokenizer::parse(mutator.mutate(file), "tokenizer.json");
    const auto ids = read.encode(text);
    for (const std::int64_t id : ids) {
      ASSERT_GE(id, 0);
      ASSERT_LT(id, read.size());
    }
    read.decode(ids);
    read.decode_further(ids);
  });
}

TEST(Fuzz, TokenizersAreReadOrRefused) {
  const std::string tokenizer =
      R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)"
      R"({"id":0,"content":"<|end|>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},)"
      R"({"id":16,"content":"ab cd","single_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":false}],"normalizer":null,)"
      R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},)"
      R"({"type":"Split","pattern":{"Regex":"[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\s+(?!\\S)|\\s+"},"behavior":"Isolated","invert":false},)"
      R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]},)"
      R"("post_processor":null,"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},"model":{"type":"BPE","dropout":null,"unk_token":null,)"
      R"("continuing_subword_prefix":null,"fuse_unk":false,"vocab":{"<|end|>":0,"a":1,"b":2,"c":3,"d":4,"Ġ":5,"1":6,"2":7,)"
      R"("ab":8,"cd":9,"abcd":10,"Ġab":11,"Ã":12,"©":13,"Ċ":14,"é":15},)"
      R"("merges":["a b",["c","d"],"ab cd","Ġ ab"]}})";
  const std::string text = "ab abcd 12\nab cd<|end|>\xc3\xa9 ab";
  const Tokenizer whole = Tokenizer::parse(tokenizer, "tokenizer.json");
  ASSERT_EQ(whole.decode(whole.encode(text), false), text);
  fuzz_tokenizer(tokenizer, text);
}

TEST(Fuzz, TokenizersOfPiecesAreReadOrRefused) {
  // The table replaces U+00C4 by "A".
  const std::string tokenizer =
      R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)"
      R"({"id":0,"content":"</s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],)"
      R"("normalizer":{"type":"Sequence","normalizers":[{"type":"Precompiled","precompiled_charsmap":")" +
      testing::to_base64(testing::precompiled_table({{"\xc3\x84", "A"}})) +
      R"("},{"type":"Strip","strip_left":false,"strip_right":true},{"type":"Replace","pattern":{"Regex":" {2,}"},"content":"▁"}]},)"
      R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true}]},)"
      R"("post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],)"
      R"("pair":[],"special_tokens":{"</s>":{"id":"</s>","ids":[0],"tokens":["</s>"]}}},)"
      R"("decoder":{"type":"Metaspace","replacement":"▁","add_prefix_space":true},)"
      R"("model":{"type":"Unigram","unk_id":1,"byte_fallback":false,)"
      R"("vocab":[["</s>",0],["<unk>",0],["▁",-2],["▁A",-3],["b",-3.5],["▁ab",-4],["a",-5],["cab",-4.5]]}})";
  const Tokenizer whole = Tokenizer::parse(tokenizer, "tokenizer.json");
  const std::string text = "Ä ab cab</s> abÿ b";
  ASSERT_EQ(whole.decode(whole.encode("Ä ab cab")), "A ab cab");
  fuzz_tokenizer(tokenizer, text);
}

TEST(Fuzz, TokenizersOfCharactersAreReadOrRefused) {
  const std::string tokenizer =
      R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)"
      R"({"id":0,"content":"<unk>","single_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":true}],)"
      R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},"content":"▁"}]},)"
      R"("pre_tokenizer":null,"post_processor":null,)"
      R"("decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]},)"
      R"("model":{"type":"BPE","dropout":null,"unk_token":"<unk>","continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":true,"byte_fallback":true,)"
      R"("vocab":{"<unk>":0,"<0xC3>":1,"<0x84>":2,"▁":3,"a":4,"b":5,"▁a":6,"▁ab":7,"c":8},"merges":["▁ a",["▁a","b"]]}})";
  const Tokenizer whole = Tokenizer::parse(tokenizer, "tokenizer.json");
  ASSERT_EQ(whole.decode(whole.encode("ab Ä a")), "ab Ä a");
  fuzz_tokenizer(tokenizer, "ab Ä a<unk>ÿ zz c");
}

}  // namespace
}  // namespace decodelab
