// The tokenizer of a SentencePiece model that merges pieces, as a GGUF file holds it.
#include "engine/checkpoint/gguf_pieces.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "engine/checkpoint/unicode.h"

namespace decodelab {
namespace {

using nlohmann::json;

constexpr std::string_view kScoresKey = "tokenizer.ggml.scores";
constexpr std::string_view kSpace = "▁";
constexpr std::size_t kLongestPiece = 1000;  // Those that are known have some 100 bytes.

struct PieceMerge {
  double score;
  std::int64_t left;
  std::int64_t right;
};

/// Returns all pairs of pieces that make a piece, the best first.
std::vector<PieceMerge> merges_of(const std::vector<std::string_view>& tokens, const std::vector<GgufTokenType>& types,
                                  const std::vector<double>& scores) {
  const auto merged = [&](std::size_t id) {
    return types[id] == GgufTokenType::normal || types[id] == GgufTokenType::unused;
  };
  std::unordered_map<std::string_view, std::int64_t> pieces;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (merged(id)) {
      pieces.emplace(tokens[id], static_cast<std::int64_t>(id));
    }
  }
  std::vector<PieceMerge> merges;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const std::string_view piece = tokens[id];
    if (!merged(id) || piece.empty()) {
      continue;
    }
    for (std::size_t cut = first_character_bytes(piece); cut < piece.size();
         cut += first_character_bytes(piece.substr(cut))) {
      const auto left = pieces.find(piece.substr(0, cut));
      const auto right = pieces.find(piece.substr(cut));
      if (left != pieces.end() && right != pieces.end()) {
        merges.push_back({.score = scores[id], .left = left->second, .right = right->second});
      }
    }
  }
  std::ranges::stable_sort(merges, [](const PieceMerge& a, const PieceMerge& b) {
    return a.score != b.score ? a.score > b.score : std::tie(a.left, a.right) < std::tie(b.left, b.right);
  });
  return merges;
}

/// Prompts begin with a space, but what was decoded does not: the decoder takes it off again.
json text_parts(bool space_before) {
  json normalizers = json::array();
  json decoders = json::array({{{"type", "Replace"}, {"pattern", {{"String", kSpace}}}, {"content", " "}},
                               {{"type", "ByteFallback"}},
                               {{"type", "Fuse"}}});
  if (space_before) {
    normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  normalizers.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpace}});
  return {{"version", "1.0"},
          {"normalizer", {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}}},
          {"decoder", {{"type", "Sequence"}, {"decoders", std::move(decoders)}}}};
}

}  // namespace

void refuse_gguf_tokenizer(const GgufMetadata& metadata, std::string_view key, std::string_view expected,
                           std::string_view got) {
  throw std::invalid_argument(
      fmt::format("{}: key '{}': expected {}, got {}; this tokenizer cannot be read, give token ids with --prompt-ids",
                  metadata.file_name(), key, expected, got));
}

json gguf_vocabulary_json(const GgufMetadata& metadata, const std::vector<std::string_view>& tokens) {
  json vocabulary = json::object();
  std::int64_t id = 0;
  for (const std::string_view token : tokens) {
    if (!vocabulary.emplace(std::string(token), id++).second) {
      refuse_gguf_tokenizer(metadata, kGgufTokensKey, "every token once", fmt::format("{} twice", in_quotes(token)));
    }
  }
  return vocabulary;
}

std::vector<GgufTokenType> gguf_token_types(const GgufMetadata& metadata, std::size_t tokens) {
  const std::vector<std::int64_t> numbers = metadata.integers(kGgufTypesKey);
  if (numbers.size() != tokens) {
    refuse_gguf_tokenizer(metadata, kGgufTypesKey, fmt::format("{} types, one for each token", tokens),
                          fmt::to_string(numbers.size()));
  }
  std::vector<GgufTokenType> types;
  types.reserve(numbers.size());
  for (const std::int64_t number : numbers) {
    if (number < static_cast<std::int64_t>(GgufTokenType::normal) ||
        number > static_cast<std::int64_t>(GgufTokenType::byte)) {
      refuse_gguf_tokenizer(metadata, kGgufTypesKey, "types from 1 (normal) to 6 (byte)", fmt::to_string(number));
    }
    types.push_back(GgufTokenType{number});
  }
  return types;
}

json gguf_added_token_json(std::size_t id, std::string_view content, bool special, bool normalized) {
  return {{"id", id},        {"content", std::string(content)}, {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", normalized},        {"special", special}};
}

json gguf_pieces_json(const GgufMetadata& metadata) {
  for (const std::string_view key : {kGgufTokensKey, kGgufTypesKey, kScoresKey}) {
    if (!metadata.contains(key)) {
      refuse_gguf_tokenizer(metadata, key, "pieces with this key", "none");
    }
  }
  const std::vector<std::string_view> tokens = metadata.texts(kGgufTokensKey);
  if (tokens.empty()) {
    refuse_gguf_tokenizer(metadata, kGgufTokensKey, "at least one piece", "none");
  }
  const std::vector<GgufTokenType> types = gguf_token_types(metadata, tokens.size());
  const std::vector<double> scores = metadata.numbers(kScoresKey);
  if (scores.size() != tokens.size()) {
    refuse_gguf_tokenizer(metadata, kScoresKey, fmt::format("{} scores, one for each token", tokens.size()),
                          fmt::to_string(scores.size()));
  }
  if (!std::ranges::all_of(scores, [](double score) { return std::isfinite(score); })) {
    refuse_gguf_tokenizer(metadata, kScoresKey, "numbers", "an infinity or none");
  }
  if (const auto longest = std::ranges::max(tokens, {}, &std::string_view::size); longest.size() > kLongestPiece) {
    refuse_gguf_tokenizer(metadata, kGgufTokensKey, fmt::format("pieces of up to {} bytes", kLongestPiece),
                          fmt::format("one of {}", longest.size()));
  }
  const bool space_before = !metadata.contains(kGgufSpaceKey) || metadata.boolean(kGgufSpaceKey);
  json file = text_parts(space_before);
  file["added_tokens"] = json::array();
  json unknown;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (types[id] == GgufTokenType::unknown) {
      unknown = std::string(tokens[id]);
    }
    // Gemma's own tokens of several spaces are found in a text whose spaces are written as they are in pieces.
    if (types[id] == GgufTokenType::control || types[id] == GgufTokenType::user_defined) {
      const bool special = types[id] == GgufTokenType::control;
      file["added_tokens"].push_back(gguf_added_token_json(id, tokens[id], special, !special && !space_before));
    }
  }
  json merges = json::array();
  for (const PieceMerge& merge : merges_of(tokens, types, scores)) {
    merges.push_back({std::string(tokens[static_cast<std::size_t>(merge.left)]),
                      std::string(tokens[static_cast<std::size_t>(merge.right)])});
  }
  const bool has_bytes = std::ranges::find(types, GgufTokenType::byte) != types.end();
  file["model"] = {{"type", "BPE"},
                   {"unk_token", std::move(unknown)},
                   {"fuse_unk", true},
                   {"byte_fallback", has_bytes},
                   {"vocab", gguf_vocabulary_json(metadata, tokens)},
                   {"merges", std::move(merges)}};
  return file;
}

}  // namespace decodelab
