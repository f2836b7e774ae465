// What a tokenizer.json changes in a text before it is cut: its normalizer.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace decodelab {

/// Applies NFC, NFD, NFKC, NFKD, Prepend, Replace, Strip and Precompiled, alone or in a Sequence; they mean what they
/// do in Hugging Face's tokenizers.
class Normalizer {
 public:
  /// Reads the value of the key `normalizer`; null changes nothing. Throws std::invalid_argument, naming `file_name`
  /// and the kind that was found, for anything else.
  Normalizer(const nlohmann::json& description, const std::string& file_name);

  std::string normalize(std::string_view text) const;

 private:
  std::vector<std::function<std::string(std::string_view)>> steps_;
};

}  // namespace decodelab
