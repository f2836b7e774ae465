// Writes the tokenizer.json that the metadata of a GGUF file stands for, and reads it.
#include "engine/checkpoint/gguf_tokenizer.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "engine/checkpoint/gguf_pieces.h"

namespace decodelab {
namespace {

using nlohmann::json;

constexpr std::string_view kGgufModelKey = "tokenizer.ggml.model";
constexpr std::string_view kPiecesModel = "llama";  // A SentencePiece model that merges pieces.
constexpr std::string_view kGgufPreKey = "tokenizer.ggml.pre";
constexpr std::string_view kGgufMergesKey = "tokenizer.ggml.merges";
constexpr std::string_view kGgufBosKey = "tokenizer.ggml.bos_token_id";
constexpr std::string_view kGgufEosKey = "tokenizer.ggml.eos_token_id";
constexpr std::string_view kGgufAddBosKey = "tokenizer.ggml.add_bos_token";
constexpr std::string_view kGgufTemplateKey = "tokenizer.chat_template";

// The patterns of the tokenizer.json of Llama 3 and of Qwen 2: they differ in how many digits make a word.
constexpr std::string_view kLlama3Pattern = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
                                            R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Pattern = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
                                           R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// How a text is cut into words before the merges.
struct GgufPreTokenizer {
  std::string_view name;     // The value of kGgufPreKey.
  std::string_view pattern;  // Empty: GPT-2's, which ByteLevel has built in.
  bool single_digits = false;
  bool ignore_merges = false;  // A word that is a token is that token, whatever its merges give.
  bool add_bos_token = false;  // Where the file does not say.
  bool nfc = false;            // Texts are brought into this normal form first.
};

constexpr std::array<GgufPreTokenizer, 8> kGgufPreTokenizers{{
    {.name = "smollm", .pattern = "", .single_digits = true},
    {.name = "starcoder", .pattern = "", .single_digits = true},
    {.name = "refact", .pattern = "", .single_digits = true},
    {.name = "gpt-2", .pattern = ""},
    {.name = "llama-bpe", .pattern = kLlama3Pattern, .ignore_merges = true, .add_bos_token = true},
    {.name = "llama3", .pattern = kLlama3Pattern, .ignore_merges = true, .add_bos_token = true},
    {.name = "llama-v3", .pattern = kLlama3Pattern, .ignore_merges = true, .add_bos_token = true},
    {.name = "qwen2", .pattern = kQwen2Pattern, .nfc = true},
}};

const GgufPreTokenizer& gguf_pre_tokenizer(const GgufMetadata& metadata) {
  const auto name = metadata.text(kGgufPreKey);
  const auto known = std::ranges::find(kGgufPreTokenizers, name, &GgufPreTokenizer::name);
  if (known == kGgufPreTokenizers.end()) {
    std::vector<std::string_view> names;
    for (const GgufPreTokenizer& each : kGgufPreTokenizers) {
      names.push_back(each.name);
    }
    refuse_gguf_tokenizer(metadata, kGgufPreKey, fmt::format("one of {}", fmt::join(names, ", ")), in_quotes(name));
  }
  return *known;
}

// The kind comes first: files of other kinds lack some of the keys.
void check_gguf_tokenizer_keys(const GgufMetadata& metadata) {
  for (const std::string_view key : {kGgufModelKey, kGgufPreKey, kGgufTokensKey, kGgufTypesKey, kGgufMergesKey}) {
    if (!metadata.contains(key)) {
      refuse_gguf_tokenizer(metadata, key, "a byte-level BPE tokenizer with this key", "none");
    }
    if (key == kGgufModelKey && metadata.text(key) != "gpt2") {
      refuse_gguf_tokenizer(metadata, key, "'gpt2' (byte-level BPE) or 'llama' (pieces with scores)",
                            in_quotes(metadata.text(key)));
    }
  }
  if (metadata.contains(kGgufSpaceKey) && metadata.boolean(kGgufSpaceKey)) {
    refuse_gguf_tokenizer(metadata, kGgufSpaceKey, "false", "true");
  }
}

json gguf_pre_tokenizer_json(const GgufPreTokenizer& kind) {
  json steps = json::array();
  if (kind.single_digits) {
    steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
  }
  if (!kind.pattern.empty()) {
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", std::string(kind.pattern)}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  }
  steps.push_back({{"type", "ByteLevel"},
                   {"add_prefix_space", false},
                   {"trim_offsets", true},
                   {"use_regex", kind.pattern.empty()}});
  return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

// Tokens that are matched in the text before it is cut into words.
json gguf_added_tokens_json(const GgufMetadata& metadata, const std::vector<std::string_view>& tokens) {
  const std::vector<GgufTokenType> types = gguf_token_types(metadata, tokens.size());
  json added = json::array();
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const GgufTokenType type = types[id];
    if (type == GgufTokenType::normal || type == GgufTokenType::unused) {
      continue;
    }
    if (type != GgufTokenType::control && type != GgufTokenType::user_defined) {
      refuse_gguf_tokenizer(metadata, kGgufTypesKey, "1 (normal), 3 (control), 4 (user-defined) or 5 (unused)",
                            fmt::format("{} for the token {}", static_cast<std::int64_t>(type), in_quotes(tokens[id])));
    }
    added.push_back(gguf_added_token_json(id, tokens[id], type == GgufTokenType::control, /*normalized=*/false));
  }
  return added;
}

// Returns -1 where the key is missing.
std::int64_t gguf_token_id(const GgufMetadata& metadata, std::string_view key, std::size_t tokens) {
  if (!metadata.contains(key)) {
    return -1;
  }
  const std::int64_t id = metadata.integer(key);
  if (id < 0 || static_cast<std::uint64_t>(id) >= tokens) {
    refuse_gguf_tokenizer(metadata, key, fmt::format("an id of the {} tokens", tokens), fmt::to_string(id));
  }
  return id;
}

std::string gguf_tokenizer_text(const GgufMetadata& metadata, const json& tokenizer) {
  try {
    return tokenizer.dump();
  } catch (const json::type_error&) {
    refuse_gguf_tokenizer(metadata, kGgufTokensKey, "tokens and merges in UTF-8", "other bytes");
  }
}

json gguf_byte_level_json(const GgufMetadata& metadata, const GgufPreTokenizer& kind) {
  const std::vector<std::string_view> tokens = metadata.texts(kGgufTokensKey);
  return {{"version", "1.0"},
          {"added_tokens", gguf_added_tokens_json(metadata, tokens)},
          {"normalizer", kind.nfc ? json{{"type", "NFC"}} : json()},
          {"pre_tokenizer", gguf_pre_tokenizer_json(kind)},
          {"model",
           {{"type", "BPE"},
            {"ignore_merges", kind.ignore_merges},
            {"vocab", gguf_vocabulary_json(metadata, tokens)},
            {"merges", metadata.texts(kGgufMergesKey)}}}};
}

// Nothing where the file has a tokenizer of another kind.
const GgufPreTokenizer* gguf_byte_level_kind(const GgufMetadata& metadata) {
  if (metadata.contains(kGgufModelKey) && metadata.text(kGgufModelKey) == kPiecesModel) {
    return nullptr;
  }
  check_gguf_tokenizer_keys(metadata);
  return &gguf_pre_tokenizer(metadata);
}

}  // namespace

GgufTokenizer read_gguf_tokenizer(const GgufMetadata& metadata) {
  const GgufPreTokenizer* kind = gguf_byte_level_kind(metadata);
  const json tokenizer = kind == nullptr ? gguf_pieces_json(metadata) : gguf_byte_level_json(metadata, *kind);
  const std::size_t tokens = tokenizer.at("model").at("vocab").size();
  return {.tokenizer = Tokenizer::parse(gguf_tokenizer_text(metadata, tokenizer), metadata.file_name()),
          .bos_token_id = gguf_token_id(metadata, kGgufBosKey, tokens),
          .eos_token_id = gguf_token_id(metadata, kGgufEosKey, tokens),
          .add_bos_token = metadata.contains(kGgufAddBosKey) ? metadata.boolean(kGgufAddBosKey)
                                                             : kind == nullptr || kind->add_bos_token,
          .chat_template =
              metadata.contains(kGgufTemplateKey) ? std::string(metadata.text(kGgufTemplateKey)) : std::string()};
}

}  // namespace decodelab
