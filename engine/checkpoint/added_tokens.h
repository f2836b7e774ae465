// The tokens of a tokenizer.json that are matched in the text before anything else.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/checkpoint/normalizer.h"
#include "engine/checkpoint/token_model.h"

namespace decodelab {

/// Holds a stretch of the text between added tokens, or one added token.
struct AddedTokenPiece {
  std::string_view text;
  std::int64_t id = -1;  ///< -1: no added token.
};

/// Finds added tokens, the leftmost first and the longest of those that begin there. Tokens of the raw text
/// (normalized: false) are matched first, the others, normalized, in what the normalizer makes of the rest.
class AddedTokens {
 public:
  struct Token {
    std::string content;
    bool special = false;
  };

  /// Reads the value of the key `added_tokens`. Throws std::invalid_argument, naming `file_name`, for a malformed list,
  /// a token that appears twice, an id that is neither the one in `model` nor the next after it, and for tokens that
  /// take spaces or match whole words only (lstrip, rstrip, single_word).
  AddedTokens(const nlohmann::json& list, const TokenModel& model, const Normalizer& normalizer,
              const std::string& file_name);

  /// Return the pieces of a text in order, none of them empty: those of the raw text, and of a normalized one.
  std::vector<AddedTokenPiece> split_raw(std::string_view text) const { return split(raw_, text); }
  std::vector<AddedTokenPiece> split_normalized(std::string_view text) const { return split(normalized_, text); }
  const std::unordered_map<std::int64_t, Token>& by_id() const { return by_id_; }

 private:
  struct Candidate {
    std::string content;
    std::int64_t id;
  };
  // Tokens by their first byte, the longest first.
  using Matcher = std::array<std::vector<Candidate>, 256>;

  static std::vector<AddedTokenPiece> split(const Matcher& matcher, std::string_view text);

  std::unordered_map<std::int64_t, Token> by_id_;
  Matcher raw_;
  Matcher normalized_;
};

}  // namespace decodelab
