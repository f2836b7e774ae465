// The characters that a SentencePiece model replaces before it cuts a text.
#include "engine/checkpoint/precompiled_map.h"

#include <array>
#include <stdexcept>

#include <fmt/format.h>

#include "engine/checkpoint/unicode.h"

namespace decodelab {
namespace {

/// Grapheme clusters of fewer bytes are looked up whole.
constexpr std::size_t kLongGrapheme = 6;
constexpr std::size_t kUnitBytes = 4;

// The fields of a unit of Darts-clone.
bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
std::uint32_t value_of(std::uint32_t unit) { return unit & ((1u << 31) - 1); }
std::uint32_t label_of(std::uint32_t unit) { return unit & (1u << 31 | 0xFF); }
std::size_t offset_of(std::uint32_t unit) { return static_cast<std::size_t>(unit >> 10) << ((unit & 1u << 9) >> 6); }

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t index = 0; index < kUnitBytes; ++index) {
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[index])) << (8 * index);
  }
  return value;
}

int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') {
    return c - 'A';
  }
  if (c >= 'a' && c <= 'z') {
    return c - 'a' + 26;
  }
  if (c >= '0' && c <= '9') {
    return c - '0' + 52;
  }
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

PrecompiledMap::PrecompiledMap(std::string_view table) {
  const std::size_t trie_bytes = table.size() < kUnitBytes ? 0 : little_endian(table);
  if (trie_bytes == 0 || trie_bytes % kUnitBytes != 0 || trie_bytes > table.size() - kUnitBytes) {
    throw std::invalid_argument(fmt::format(
        "expected a table that begins with the size of its trie, got {} bytes that say {}", table.size(), trie_bytes));
  }
  units_.reserve(trie_bytes / kUnitBytes);
  for (std::size_t at = kUnitBytes; at < kUnitBytes + trie_bytes; at += kUnitBytes) {
    units_.push_back(little_endian(table.substr(at)));
  }
  texts_ = table.substr(kUnitBytes + trie_bytes);
}

std::optional<std::string_view> PrecompiledMap::replacement_of(std::string_view characters) const {
  std::size_t node = offset_of(unit(0));
  for (const char c : characters) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) {
      break;
    }
    node ^= byte;
    const std::uint32_t found = unit(node);
    if (label_of(found) != byte) {
      break;
    }
    node ^= offset_of(found);
    if (has_leaf(found)) {
      const std::size_t begin = value_of(unit(node));
      if (begin > texts_.size()) {
        return std::nullopt;
      }
      const std::string_view rest = std::string_view(texts_).substr(begin);
      return rest.substr(0, rest.find('\0'));
    }
  }
  return std::nullopt;
}

std::string PrecompiledMap::replaced(std::string_view text) const {
  std::string result;
  result.reserve(text.size());
  for (const std::string_view cluster : graphemes(text)) {
    if (cluster.size() < kLongGrapheme) {
      if (const auto whole = replacement_of(cluster)) {
        result += *whole;
        continue;
      }
    }
    for (std::string_view rest = cluster; !rest.empty();) {
      const std::string_view character = rest.substr(0, first_character_bytes(rest));
      result += replacement_of(character).value_or(character);
      rest.remove_prefix(character.size());
    }
  }
  return result;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) {
    return std::nullopt;
  }
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool pads = at >= text.size() - padding;
    const int value = pads ? 0 : base64_value(text[at]);
    if (value < 0) {
      return std::nullopt;
    }
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    if (at % 4 == 3) {
      for (const int shift : {16, 8, 0}) {
        bytes += static_cast<char>(bits >> shift & 0xFF);
      }
      bits = 0;
    }
  }
  bytes.erase(bytes.size() - padding);
  return bytes;
}

}  // namespace decodelab
