// Renders a conversation as the text of a prompt, by the template that the model's makers wrote for it.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace decodelab {

/// Describes a turn of a conversation.
struct ChatMessage {
  std::string role;  ///< system, user or assistant
  std::string content;
};

/// Holds a model's chat template and the tokens that it writes.
struct ChatTemplate {
  std::string text;  ///< Jinja; empty where the model has none.
  std::string bos_token;
  std::string eos_token;
  std::string file_name;  ///< For messages only.

  /// Returns the prompt that asks for the assistant's answer, with special tokens as text.
  ///
  /// Templates are Jinja, of which this renders the part that those of chat models mostly use: `for` over a list,
  /// `if`, `set` of a name, and the expressions of chat_expression.h; a part that a conversation does not reach may
  /// hold anything. `messages`, `add_generation_prompt`, `bos_token` and `eos_token` are defined; tools and documents
  /// are not. Blocks take the newline behind them and the spaces before them away, as in Transformers. Throws
  /// std::invalid_argument naming file_name for an empty template, and for what is not known or not well-formed.
  std::string render(std::span<const ChatMessage> messages) const;
};

/// Reads the template of a Hugging Face directory: `chat_template.jinja`, else `chat_template` in
/// tokenizer_config.json, where the special tokens stand too. An empty template where there is neither. Throws
/// std::invalid_argument naming the file that is malformed.
ChatTemplate load_chat_template(const std::filesystem::path& directory);

}  // namespace decodelab
