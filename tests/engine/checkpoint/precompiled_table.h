// Writes tables of replaced characters as SentencePiece compiles them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace decodelab::testing {

/// Returns the table that replaces each key, bytes of characters, by its text. Each node of the trie has a block of 256
/// units for itself, where a trie of Darts-clone would share them.
inline std::string precompiled_table(const std::map<std::string, std::string>& entries) {
  constexpr std::uint32_t kBlock = 256;
  constexpr std::uint32_t kLeaf = 1u << 8;
  constexpr std::uint32_t kValue = 1u << 31;
  std::vector<std::uint32_t> units(2 * kBlock);
  std::string texts;
  std::map<std::string, std::uint32_t> base_of{{"", kBlock}};  // By the bytes that lead to a node.
  units[0] = kBlock << 10;
  for (const auto& [key, text] : entries) {
    std::uint32_t last = 0;
    for (std::size_t length = 1; length <= key.size(); ++length) {
      const std::uint32_t byte = static_cast<unsigned char>(key[length - 1]);
      const std::uint32_t unit = base_of.at(key.substr(0, length - 1)) ^ byte;
      const auto [base, fresh] = base_of.try_emplace(key.substr(0, length), static_cast<std::uint32_t>(units.size()));
      if (fresh) {
        units.resize(units.size() + kBlock);
        units[unit] = (unit ^ base->second) << 10 | byte;
      }
      last = unit;
    }
    units[last] |= kLeaf;
    units[base_of.at(key)] = kValue | static_cast<std::uint32_t>(texts.size());
    texts += text + '\0';
  }
  std::string table;
  const auto append = [&](std::uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) {
      table += static_cast<char>(value >> shift & 0xFF);
    }
  };
  append(static_cast<std::uint32_t>(4 * units.size()));
  for (const std::uint32_t unit : units) {
    append(unit);
  }
  return table + texts;
}

inline std::string to_base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t bits = 0;
    for (std::size_t index = 0; index < 3; ++index) {
      bits = bits << 8 | (at + index < bytes.size() ? static_cast<unsigned char>(bytes[at + index]) : 0);
    }
    for (std::size_t digit = 0; digit < 4; ++digit) {
      text += at + digit > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * digit) & 63];
    }
  }
  return text;
}

}  // namespace decodelab::testing
