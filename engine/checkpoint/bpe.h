// Byte-pair encoding of one word: the vocabulary and the merges of a tokenizer.json.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/checkpoint/token_model.h"

namespace decodelab {

/// Splits a word into bytes or characters and merges pairs of neighbours by rank until none is left (Sennrich 2016,
/// arXiv:1508.07909). A character without a token becomes the tokens of its bytes, or with its neighbours of this kind
/// one unknown token.
class Bpe final : public TokenModel {
 public:
  /// Reads the value of the key `model`. Throws std::invalid_argument, naming `file_name`, when it is no BPE (word
  /// pieces, or Unigram where tokens are spelled in bytes), has a prefix or suffix for parts of words, dropout, or byte
  /// fallback where all bytes have tokens, or when a merge names a token that is not in the vocabulary.
  Bpe(const nlohmann::json& model, Spelling spelling, const std::string& file_name);

  /// Takes n log n steps for n bytes.
  void encode(std::string_view word, std::vector<std::int64_t>& ids) const override;
  std::int64_t id_of(const std::string& token) const override;
  const std::unordered_map<std::int64_t, std::string>& bytes_of() const override { return bytes_of_; }

 private:
  struct Merge {
    std::int64_t rank = 0;
    std::int64_t result = 0;
  };
  struct PairHash {
    std::size_t operator()(const std::pair<std::int64_t, std::int64_t>& pair) const;
  };

  void read_vocabulary(const nlohmann::json& vocabulary, const std::string& file_name);
  void read_unknown(const nlohmann::json& model, const std::string& file_name);
  void read_merges(const nlohmann::json& merges, const std::string& file_name);
  const Merge* find_merge(std::int64_t left, std::int64_t right) const;
  /// Returns the ids of a word before any merge.
  std::vector<std::int64_t> smallest_tokens(std::string_view word) const;
  std::vector<std::int64_t> tokens_of_characters(std::string_view word) const;

  std::unordered_map<std::string, std::int64_t> ids_;  // By the file's spelling.
  std::unordered_map<std::int64_t, std::string> bytes_of_;
  std::array<std::int64_t, 256> id_of_byte_{};  // -1 where there is none.
  std::unordered_map<std::pair<std::int64_t, std::int64_t>, Merge, PairHash> merges_;
  bool ignore_merges_ = false;  // A word that is a token is that token, whatever its merges give.
  Spelling spelling_ = Spelling::bytes;
  // Of characters.
  std::optional<ByteTokens> byte_tokens_;
  std::int64_t unknown_ = -1;  // -1: there is none.
  bool fuse_unknown_ = false;  // Neighbours become one unknown token.
};

}  // namespace decodelab
