// How tokens become a text again: what the decoder of a tokenizer.json does.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/checkpoint/token_model.h"

namespace decodelab {

/// Applies ByteLevel, Metaspace, or a Sequence of Replace, ByteFallback, Fuse, Strip and Metaspace; they mean what they
/// do in Hugging Face's tokenizers, except that bytes which are no UTF-8 stay as they are.
class TokenDecoder {
 public:
  /// Reads the value of the key `decoder`. Throws std::invalid_argument, naming `file_name` and the kind that was
  /// found, for any other kind, and for one that does not go with how tokens are spelled.
  TokenDecoder(const nlohmann::json& description, Spelling spelling, const std::string& file_name);

  /// Returns the text of the tokens, as TokenModel::bytes_of() has them, in order. `begins`: no text stands before it,
  /// so that a space which only marks the beginning of its first word is left out.
  std::string decode(std::vector<std::string> tokens, bool begins) const;

 private:
  struct Step {
    std::function<void(std::vector<std::string>&)> apply;
    bool at_beginning = false;  ///< Only where the text begins.
  };
  class Builder;

  std::vector<Step> steps_;
};

}  // namespace decodelab
