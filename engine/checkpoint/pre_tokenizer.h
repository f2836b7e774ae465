// Cuts a text into the words that byte-pair encoding works on, as the pre_tokenizer of a tokenizer.json says.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/checkpoint/regex.h"

namespace decodelab {

/// Applies ByteLevel, alone or as the last part of a Sequence with Split and Digits; they mean what they do in Hugging
/// Face's tokenizers.
class PreTokenizer {
 public:
  /// Reads the value of the key `pre_tokenizer`. Throws std::invalid_argument, naming `file_name` and the kind that was
  /// found, for anything else.
  PreTokenizer(const nlohmann::json& description, const std::string& file_name);

  /// Returns the words of `text` as bytes, none of them empty. Together they are the text, except for spaces that
  /// add_prefix_space puts in front and for matches that a Split with the behavior Removed leaves out.
  std::vector<std::string> split(std::string_view text) const;

  /// What happens to the stretches that a pattern matched.
  enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

  /// One cut: every word so far is replaced by its parts.
  struct Step {
    bool add_prefix_space = false;                ///< Before the cut, to words that do not begin with a space.
    std::optional<Regex> pattern = std::nullopt;  ///< None: no cut.
    bool invert = false;                          ///< What lies between matches counts as the match.
    Behavior behavior = Behavior::isolated;
  };

 private:
  std::vector<Step> steps_;
};

}  // namespace decodelab
