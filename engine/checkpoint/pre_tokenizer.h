// Cuts a text into the words that byte-pair encoding works on, as the pre_tokenizer of a tokenizer.json says.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/checkpoint/regex.h"
#include "engine/checkpoint/token_model.h"

namespace decodelab {

/// Applies Split, Digits, WhitespaceSplit and Metaspace, alone or in a Sequence, which may end with ByteLevel; they
/// mean what they do in Hugging Face's tokenizers.
class PreTokenizer {
 public:
  /// Reads the value of the key `pre_tokenizer`; null cuts nothing. Throws std::invalid_argument, naming `file_name`
  /// and the kind that was found, for anything else.
  PreTokenizer(const nlohmann::json& description, const std::string& file_name);

  /// Returns the words of `text` as bytes, none of them empty. Together they are the text, except for spaces that are
  /// put in front or written as another character, and for what is left out. `begins`: no text stands before it.
  std::vector<std::string> split(std::string_view text, bool begins) const;
  /// Returns what the words are to be spelled in: bytes with ByteLevel, else characters.
  Spelling spelling() const { return spelling_; }

  /// What happens to the stretches that a pattern matched.
  enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

  /// Which words a prefix is put in front of, of those that do not begin with it.
  enum class Prefixed { none, first_of_the_text, all };

  /// One cut: every word so far is replaced by its parts.
  struct Step {
    std::string space = " ";                      ///< What spaces are written as, before the cut.
    Prefixed prefixed = Prefixed::none;           ///< Words that get `space` in front, before the cut.
    std::optional<Regex> pattern = std::nullopt;  ///< None: no cut.
    bool invert = false;                          ///< What lies between matches counts as the match.
    Behavior behavior = Behavior::isolated;
  };

 private:
  std::vector<Step> steps_;
  Spelling spelling_ = Spelling::characters;
};

}  // namespace decodelab
