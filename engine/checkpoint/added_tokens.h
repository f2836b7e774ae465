// The tokens of a tokenizer.json that are matched in the text before anything else.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/checkpoint/bpe.h"

namespace decodelab {

/// Holds a stretch of the text between added tokens, or one added token.
struct AddedTokenPiece {
  std::string_view text;
  std::int64_t id = -1;  ///< -1: no added token.
};

/// Finds added tokens, the leftmost first and the longest of those that begin there. Tokens of the raw text
/// (normalized: false) are matched first, the others in what is left.
class AddedTokens {
 public:
  struct Token {
    std::string content;
    bool special = false;
  };

  /// Reads the value of the key `added_tokens`. Throws std::invalid_argument, naming `file_name`, for a malformed list,
  /// a token that appears twice, an id that is neither the one in `model` nor the next after it, and for tokens that
  /// take spaces or match whole words only (lstrip, rstrip, single_word).
  AddedTokens(const nlohmann::json& list, const Bpe& model, const std::string& file_name);

  /// `text` in order; pieces may not be empty.
  std::vector<AddedTokenPiece> split(std::string_view text) const;
  const std::unordered_map<std::int64_t, Token>& by_id() const { return by_id_; }

 private:
  struct Candidate {
    std::string content;
    std::int64_t id;
  };
  // Tokens by their first byte, the longest first.
  using Matcher = std::array<std::vector<Candidate>, 256>;

  static void split_piece(const Matcher& matcher, std::string_view text, std::vector<AddedTokenPiece>& pieces);

  std::unordered_map<std::int64_t, Token> by_id_;
  Matcher raw_;
  Matcher normalized_;
};

}  // namespace decodelab
