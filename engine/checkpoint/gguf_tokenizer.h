// The tokenizer that a GGUF file holds in its metadata.
#pragma once

#include <cstdint>
#include <string>

#include "engine/checkpoint/gguf_metadata.h"
#include "engine/checkpoint/tokenizer.h"

namespace decodelab {

/// Holds a tokenizer and what a file says beside it about prompts.
struct GgufTokenizer {
  Tokenizer tokenizer;
  std::int64_t bos_token_id = -1;  ///< -1: the file names none.
  std::int64_t eos_token_id = -1;  ///< -1: the file names none.
  bool add_bos_token = false;      ///< A prompt begins with bos_token_id; encode() does not put it there.
  std::string chat_template = {};  ///< The text of a Jinja template; empty where the file has none.
};

/// Builds the tokenizer.json that the keys `tokenizer.ggml.*` stand for, and reads it.
///
/// Pieces with scores are known (`tokenizer.ggml.model` llama, see gguf_pieces_json()), and byte-level BPE (gpt2): of
/// the ways to cut a text into words
/// (`tokenizer.ggml.pre`) those of StarCoder and SmolLM (smollm, starcoder, refact), GPT-2 (gpt-2), Llama 3 (llama-bpe,
/// llama3, llama-v3) and Qwen 2 (qwen2), as Hugging Face publishes them. Tokens that the file calls control tokens are
/// matched in the text first and are special; those that it calls user-defined are matched first, too. Texts for Qwen
/// are brought into the normal form NFC first, as by Qwen's own tokenizer, which llama.cpp leaves to the caller. Where
/// the file does not say whether a prompt begins with bos_token_id, it does for pieces and for Llama 3 and
/// for no other, as in llama.cpp.
///
/// Throws std::invalid_argument naming the file, what was expected and what was found, for every other kind, a missing
/// key, a token that appears twice or is not UTF-8, token types that do not match the tokens, a bos or eos id that is
/// no token, and for what Tokenizer::parse() refuses. The messages about kinds and keys hint at --prompt-ids.
GgufTokenizer read_gguf_tokenizer(const GgufMetadata& metadata);

}  // namespace decodelab
