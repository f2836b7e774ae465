// Byte-pair encoding of one word: the vocabulary and the merges of a tokenizer.json.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace decodelab {

/// The largest id of a token: Hugging Face's ids have 32 bits, and no vocabulary has a billion tokens.
inline constexpr std::uint64_t kMaxId = (std::uint64_t{1} << 31) - 1;

/// Splits a word into bytes and merges pairs of neighbours by rank until none is left (Sennrich 2016,
/// arXiv:1508.07909).
class Bpe {
 public:
  /// Reads the value of the key `model`. Throws std::invalid_argument, naming `file_name`, when it is no byte-level BPE
  /// (unigram, word pieces, a prefix or suffix for parts of words, dropout, byte fallback), or when a merge names a
  /// token that is not in the vocabulary.
  Bpe(const nlohmann::json& model, const std::string& file_name);

  /// Appends the ids of `word`, raw bytes. Takes n log n steps for n bytes. Throws std::invalid_argument for a byte
  /// that the vocabulary lacks.
  void encode(std::string_view word, std::vector<std::int64_t>& ids) const;

  /// Returns the id of a token as the file writes it; -1 when there is none.
  std::int64_t id_of(const std::string& token) const;
  /// Returns the bytes that every id stands for.
  const std::unordered_map<std::int64_t, std::string>& bytes_of() const { return bytes_of_; }

 private:
  struct Merge {
    std::int64_t rank = 0;
    std::int64_t result = 0;
  };
  struct PairHash {
    std::size_t operator()(const std::pair<std::int64_t, std::int64_t>& pair) const;
  };

  void read_vocabulary(const nlohmann::json& vocabulary, const std::string& file_name);
  void read_merges(const nlohmann::json& merges, const std::string& file_name);
  const Merge* find_merge(std::int64_t left, std::int64_t right) const;

  std::unordered_map<std::string, std::int64_t> ids_;  // By the file's spelling.
  std::unordered_map<std::int64_t, std::string> bytes_of_;
  std::array<std::int64_t, 256> id_of_byte_{};  // -1 where there is none.
  std::unordered_map<std::pair<std::int64_t, std::int64_t>, Merge, PairHash> merges_;
  bool ignore_merges_ = false;  // A word that is a token is that token, whatever its merges give.
};

}  // namespace decodelab
