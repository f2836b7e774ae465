// Byte-pair encoding of one word: how pairs are merged.
#include "engine/checkpoint/bpe.h"

#include <functional>
#include <queue>
#include <stdexcept>
#include <tuple>

#include <fmt/format.h>

#include "base/text.h"
#include "engine/checkpoint/byte_alphabet.h"
#include "engine/checkpoint/unicode.h"

namespace decodelab {
namespace {

// A token of the word so far, in a list linked by indices; `live` is false once it became part of the one before.
struct Symbol {
  std::int64_t id;
  std::ptrdiff_t previous;
  std::ptrdiff_t next;
  bool live;
};

// A pair that could be merged when it was queued; it may no longer exist when it is taken from the queue.
struct Candidate {
  std::int64_t rank;
  std::ptrdiff_t position;
  std::int64_t result;

  bool operator>(const Candidate& other) const {
    return std::tie(rank, position) > std::tie(other.rank, other.position);
  }
};

}  // namespace

std::size_t Bpe::PairHash::operator()(const std::pair<std::int64_t, std::int64_t>& pair) const {
  // Ids have less than 31 bits; the odd multiplier (2^64 / golden ratio) spreads them.
  return (static_cast<std::uint64_t>(pair.first) << 32 | static_cast<std::uint64_t>(pair.second)) *
             0x9E3779B97F4A7C15u >>
         16;
}

std::int64_t Bpe::id_of(const std::string& token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? -1 : found->second;
}

const Bpe::Merge* Bpe::find_merge(std::int64_t left, std::int64_t right) const {
  const auto found = merges_.find({left, right});
  return found == merges_.end() ? nullptr : &found->second;
}

std::vector<std::int64_t> Bpe::smallest_tokens(std::string_view word) const {
  if (spelling_ == Spelling::characters) {
    return tokens_of_characters(word);
  }
  std::vector<std::int64_t> ids;
  ids.reserve(word.size());
  for (const char byte : word) {
    const std::int64_t id = id_of_byte_[static_cast<unsigned char>(byte)];
    if (id < 0) {
      throw std::invalid_argument(fmt::format("the text has the byte 0x{:02x}, which this tokenizer has no token for",
                                              static_cast<unsigned char>(byte)));
    }
    ids.push_back(id);
  }
  return ids;
}

std::vector<std::int64_t> Bpe::tokens_of_characters(std::string_view word) const {
  std::vector<std::int64_t> ids;
  ids.reserve(word.size());
  bool after_unknown = false;
  while (!word.empty()) {
    const std::string_view character = word.substr(0, first_character_bytes(word));
    word.remove_prefix(character.size());
    if (const std::int64_t id = id_of(std::string(character)); id >= 0) {
      ids.push_back(id);
      after_unknown = false;
      continue;
    }
    if (byte_tokens_ && byte_tokens_->append(character, ids)) {
      after_unknown = false;
      continue;
    }
    if (unknown_ < 0) {
      throw std::invalid_argument(
          fmt::format("the text has {}, which this tokenizer has no token for", in_quotes(character)));
    }
    if (!after_unknown || !fuse_unknown_) {
      ids.push_back(unknown_);
    }
    after_unknown = true;
  }
  return ids;
}

void Bpe::encode(std::string_view word, std::vector<std::int64_t>& ids) const {
  if (ignore_merges_) {
    const std::string token = spelling_ == Spelling::bytes ? to_byte_alphabet(word) : std::string(word);
    if (const std::int64_t whole = id_of(token); whole >= 0) {
      ids.push_back(whole);
      return;
    }
  }
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  for (const std::int64_t id : smallest_tokens(word)) {
    const auto position = static_cast<std::ptrdiff_t>(symbols.size());
    symbols.push_back({.id = id, .previous = position - 1, .next = position + 1, .live = true});
  }
  const auto end = static_cast<std::ptrdiff_t>(symbols.size());
  const auto at = [&](std::ptrdiff_t position) -> Symbol& { return symbols[static_cast<std::size_t>(position)]; };

  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](std::ptrdiff_t left, std::ptrdiff_t right) {
    if (left < 0 || right >= end) {
      return;
    }
    if (const Merge* merge = find_merge(at(left).id, at(right).id); merge != nullptr) {
      queue.push({.rank = merge->rank, .position = left, .result = merge->result});
    }
  };
  for (std::ptrdiff_t i = 0; i + 1 < end; ++i) {
    offer(i, i + 1);
  }
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = at(best.position);
    if (!left.live || left.next >= end) {
      continue;
    }
    Symbol& right = at(left.next);
    // As in Hugging Face's tokenizers, a stale entry still counts if the pair that is there now merges into the same
    // token.
    const Merge* merge = find_merge(left.id, right.id);
    if (merge == nullptr || merge->result != best.result) {
      continue;
    }
    left.id = best.result;
    left.next = right.next;
    right.live = false;
    if (right.next < end) {
      at(right.next).previous = best.position;
    }
    offer(left.previous, best.position);
    offer(best.position, left.next);
  }
  for (std::ptrdiff_t i = 0; i < end; i = at(i).next) {
    ids.push_back(at(i).id);
  }
}

}  // namespace decodelab
