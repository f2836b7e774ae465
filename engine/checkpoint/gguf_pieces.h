// The tokenizer of a SentencePiece model that merges pieces, as a GGUF file holds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/checkpoint/gguf_metadata.h"

namespace decodelab {

/// Returns the tokenizer.json that the keys of a file stand for whose `tokenizer.ggml.model` is llama (Llama 2,
/// Mistral, Gemma, TinyLlama): pieces with scores, of which the best pair is merged first, and tokens of single bytes.
/// The merges are all pairs of pieces that make a piece, in the falling order of its score. A space stands before a
/// text unless `tokenizer.ggml.add_space_prefix` is false.
///
/// Throws std::invalid_argument naming the file, the key, what was expected and what was found, for missing keys, lists
/// of other lengths than the tokens, and a token that appears twice.
nlohmann::json gguf_pieces_json(const GgufMetadata& metadata);

/// These keys stand for the tokens of a tokenizer of any kind.
inline constexpr std::string_view kGgufTokensKey = "tokenizer.ggml.tokens";
inline constexpr std::string_view kGgufTypesKey = "tokenizer.ggml.token_type";
inline constexpr std::string_view kGgufSpaceKey = "tokenizer.ggml.add_space_prefix";

/// The types of tokens (llama.cpp, enum llama_token_type).
enum class GgufTokenType : std::int64_t { normal = 1, unknown, control, user_defined, unused, byte };

/// Throws std::invalid_argument that a tokenizer cannot be read, with a hint at --prompt-ids.
[[noreturn]] void refuse_gguf_tokenizer(const GgufMetadata& metadata, std::string_view key, std::string_view expected,
                                        std::string_view got);

/// Returns the vocabulary of a tokenizer.json: ids by token. Throws std::invalid_argument for a token that stands
/// twice.
nlohmann::json gguf_vocabulary_json(const GgufMetadata& metadata, const std::vector<std::string_view>& tokens);

/// Returns the type of each token. Throws std::invalid_argument where there are more or fewer than tokens, and for a
/// type that is not known.
std::vector<GgufTokenType> gguf_token_types(const GgufMetadata& metadata, std::size_t tokens);

/// Returns an added token of a tokenizer.json.
nlohmann::json gguf_added_token_json(std::size_t id, std::string_view content, bool special, bool normalized);

}  // namespace decodelab
