// The most probable way to cut a word into pieces.
#include "engine/checkpoint/unigram.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "engine/checkpoint/tokenizer_part.h"
#include "engine/checkpoint/unicode.h"

namespace decodelab {
namespace {

using nlohmann::json;

/// What a character without a piece costs beyond the least probable piece (SentencePiece, kUnkPenalty).
constexpr double kUnknownPenalty = 10;
constexpr std::array<std::string_view, 5> kUnigramKeys{"type", "unk_id", "vocab", "byte_fallback", "fuse_unk"};

std::uint64_t edge(std::uint32_t node, char byte) {
  return std::uint64_t{node} << 8 | static_cast<unsigned char>(byte);
}

}  // namespace

Unigram::Unigram(const json& model, const std::string& file_name) {
  const TokenizerPart part("model", file_name);
  check_keys(model, kUnigramKeys, part.place());
  const json& vocabulary = part.list(model, "vocab");
  scores_.reserve(vocabulary.size());
  for (const json& entry : vocabulary) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number()) {
      part.refuse("a 'vocab' of pieces with their scores, [\"piece\", -1.5]", entry);
    }
    const auto id = static_cast<std::int64_t>(scores_.size());
    const auto& piece = entry[0].get_ref<const std::string&>();
    if (!ids_.emplace(piece, id).second) {
      part.refuse("every piece once", entry);
    }
    pieces_.emplace(id, piece);
    scores_.push_back(entry[1].get<double>());
    if (!piece.empty()) {
      add_to_trie(piece, id);
    }
  }
  const auto unknown = model.find("unk_id");
  if (unknown == model.end() || !unknown->is_number_unsigned() || unknown->get<std::uint64_t>() >= scores_.size()) {
    part.refuse("'unk_id' as the id of a piece", unknown == model.end() ? json() : *unknown);
  }
  unknown_ = unknown->get<std::int64_t>();
  unknown_score_ = *std::ranges::min_element(scores_) - kUnknownPenalty;
  if (model.contains("byte_fallback") && part.flag(model, "byte_fallback")) {
    byte_tokens_.emplace(*this);
  }
  if (model.contains("fuse_unk") && !part.flag(model, "fuse_unk")) {
    part.refuse("'fuse_unk' as true", model["fuse_unk"]);
  }
}

void Unigram::add_to_trie(std::string_view piece, std::int64_t id) {
  std::uint32_t node = 0;
  for (const char byte : piece) {
    const auto [at, fresh] = next_.try_emplace(edge(node, byte), static_cast<std::uint32_t>(piece_at_.size()));
    if (fresh) {
      piece_at_.push_back(-1);
    }
    node = at->second;
  }
  piece_at_[node] = id;
}

std::int64_t Unigram::id_of(const std::string& token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? -1 : found->second;
}

std::vector<Unigram::Place> Unigram::best_cuts(std::string_view word) const {
  std::vector<Place> places(word.size() + 1);
  const auto offer = [&](std::size_t begin, std::size_t end, std::int64_t id, double score) {
    const double candidate = score + places[begin].score;
    if (places[end].id < 0 || candidate > places[end].score) {
      places[end] = {.score = candidate, .begin = begin, .id = id};
    }
  };
  for (std::size_t begin = 0; begin < word.size();) {
    const std::size_t character = begin + first_character_bytes(word.substr(begin));
    bool has_piece = false;
    std::uint32_t node = 0;
    for (std::size_t end = begin; end < word.size(); ++end) {
      const auto next = next_.find(edge(node, word[end]));
      if (next == next_.end()) {
        break;
      }
      node = next->second;
      if (const std::int64_t id = piece_at_[node]; id >= 0) {
        offer(begin, end + 1, id, scores_[static_cast<std::size_t>(id)]);
        has_piece = has_piece || end + 1 == character;
      }
    }
    if (!has_piece) {
      offer(begin, character, unknown_, unknown_score_);
    }
    begin = character;
  }
  return places;
}

void Unigram::append(std::string_view piece, std::int64_t id, std::vector<std::int64_t>& ids) const {
  if (id == unknown_ && byte_tokens_ && id_of(std::string(piece)) < 0 && byte_tokens_->append(piece, ids)) {
    return;
  }
  ids.push_back(id);
}

void Unigram::encode(std::string_view word, std::vector<std::int64_t>& ids) const {
  const std::vector<Place> places = best_cuts(word);
  struct Piece {
    std::size_t begin;
    std::size_t end;
    std::int64_t id;
  };
  std::vector<Piece> pieces;  // From the last to the first.
  for (std::size_t end = word.size(); end > 0; end = places[end].begin) {
    const Place& place = places[end];
    if (!pieces.empty() && place.id == unknown_ && pieces.back().id == unknown_) {
      pieces.back().begin = place.begin;
    } else {
      pieces.push_back({.begin = place.begin, .end = end, .id = place.id});
    }
  }
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    append(word.substr(piece->begin, piece->end - piece->begin), piece->id, ids);
  }
}

}  // namespace decodelab
