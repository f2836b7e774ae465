// Reads the members of the parts of a tokenizer.json, and says what is wrong with them.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "engine/checkpoint/regex.h"

namespace decodelab {

/// Returns the member `type` of a part; nothing where it has none.
std::string kind_of(const nlohmann::json& part);

/// Reads members of one part of a file. What is missing is refused: Hugging Face's tokenizers write nearly all of them,
/// and a default would hide a misspelt key.
class TokenizerPart {
 public:
  /// `name` is the key of the part, such as `pre_tokenizer`.
  TokenizerPart(std::string_view name, const std::string& file_name);

  /// Throw std::invalid_argument that names the file, the part, what was expected and what was found; the second for a
  /// kind that cannot be read, with a hint at --prompt-ids.
  [[noreturn]] void refuse(std::string_view expected, const nlohmann::json& found) const;
  [[noreturn]] void refuse_kind(std::string_view expected, const nlohmann::json& found) const;

  bool flag(const nlohmann::json& part, const char* key) const;
  std::string text(const nlohmann::json& part, const char* key) const;
  const nlohmann::json& list(const nlohmann::json& part, const char* key) const;
  /// Returns the value of `pattern`, either {"Regex": ...} or {"String": ...}.
  Regex pattern(const nlohmann::json& part) const;
  /// Returns the file and the part, for messages.
  const std::string& place() const { return place_; }

 private:
  std::string place_;
};

/// Returns a pattern that matches `text` and nothing else.
Regex pattern_of_text(std::string_view text);

}  // namespace decodelab
