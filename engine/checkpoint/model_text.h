// What a checkpoint knows about text: its tokenizer, and how a conversation is written as a prompt.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/chat_template.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/tokenizer.h"

namespace decodelab {

/// Holds a tokenizer, or why there is none, and a chat template.
struct ModelText {
  std::optional<Tokenizer> tokenizer;
  std::string why_not;    ///< Why there is no tokenizer; says what to do instead.
  PromptAffixes affixes;  ///< Stand around the tokens of a prompt of plain text.
  ChatTemplate chat;

  /// Returns the tokenizer. Throws std::invalid_argument with why_not where there is none; `flag` names what asked for
  /// one, here and below.
  const Tokenizer& require_tokenizer(std::string_view flag) const;
  /// Returns the bytes that each id stands for in a text; empty for special tokens and for ids without a token. Throws
  /// as require_tokenizer().
  std::vector<std::string> token_bytes(std::string_view flag) const;
  /// Returns those of some ids. Throws as require_tokenizer().
  std::vector<std::string> token_bytes(std::string_view flag, std::span<const std::int64_t> ids) const;
  /// Returns the token ids of a prompt. Throws as require_tokenizer().
  std::vector<std::int64_t> prompt_ids(std::string_view flag, std::string_view text) const;
  /// Returns the text of a completion, which goes on behind its prompt; that of a model with an encoder begins anew.
  /// There is a tokenizer.
  std::string completion_text(std::span<const std::int64_t> ids, const ModelConfig& config) const;
  /// Returns those of a question to a chat model. Throws as require_tokenizer() and ChatTemplate::render().
  std::vector<std::int64_t> chat_ids(std::string_view flag, std::string_view question) const;
};

/// Reads what stands in a GGUF file or a directory with tokenizer.json; a tokenizer that cannot be read is a reason
/// (`why_not`), not an error. Throws std::invalid_argument for a malformed tokenizer_config.json.
ModelText load_model_text(const std::filesystem::path& checkpoint);

}  // namespace decodelab
