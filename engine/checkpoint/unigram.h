// The most probable way to cut a word into pieces: SentencePiece's unigram model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/checkpoint/token_model.h"

namespace decodelab {

/// Cuts a word into the pieces whose log-probabilities have the largest sum (Kudo 2018, arXiv:1804.10959), found by
/// Viterbi's algorithm over the bytes; ties go to the cut that Hugging Face's tokenizers take. A character that no
/// piece stands for alone costs 10 more than the least probable piece, and neighbours of this kind become one unknown
/// token, or the tokens of their bytes.
class Unigram final : public TokenModel {
 public:
  /// Reads the value of the key `model`. Throws std::invalid_argument, naming `file_name`, where it is malformed or has
  /// no piece for what is unknown.
  Unigram(const nlohmann::json& model, const std::string& file_name);

  void encode(std::string_view word, std::vector<std::int64_t>& ids) const override;
  std::int64_t id_of(const std::string& token) const override;
  const std::unordered_map<std::int64_t, std::string>& bytes_of() const override { return pieces_; }

 private:
  /// A place between two bytes of a word: where the last piece of the best cut up to here begins, and its id.
  struct Place {
    double score = 0;
    std::size_t begin = 0;
    std::int64_t id = -1;  ///< -1: no cut ends here.
  };

  void add_to_trie(std::string_view piece, std::int64_t id);
  std::vector<Place> best_cuts(std::string_view word) const;
  void append(std::string_view piece, std::int64_t id, std::vector<std::int64_t>& ids) const;

  std::unordered_map<std::int64_t, std::string> pieces_;
  std::unordered_map<std::string, std::int64_t> ids_;
  std::vector<double> scores_;
  std::int64_t unknown_ = 0;
  double unknown_score_ = 0;
  std::optional<ByteTokens> byte_tokens_;
  // A trie over bytes: the node behind a node and a byte, and the id of the piece that ends at a node, or -1.
  std::unordered_map<std::uint64_t, std::uint32_t> next_;
  std::vector<std::int64_t> piece_at_{-1};
};

}  // namespace decodelab
