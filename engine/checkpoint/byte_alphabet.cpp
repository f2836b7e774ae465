// The printable characters that byte-level tokenizers write bytes as.
#include "engine/checkpoint/byte_alphabet.h"

#include <array>

namespace decodelab {
namespace {

constexpr int kCharacters = 256 + 68;  // Code points that stand for a byte lie below this.

constexpr bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

struct Alphabet {
  std::array<int, 256> character_of{};
  std::array<int, kCharacters> byte_of{};
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.byte_of.fill(-1);
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const int character = stands_for_itself(byte) ? byte : next++;
    alphabet.character_of[static_cast<std::size_t>(byte)] = character;
    alphabet.byte_of[static_cast<std::size_t>(character)] = byte;
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::string to_byte_alphabet(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    const int character = kAlphabet.character_of[static_cast<unsigned char>(byte)];
    if (character < 0x80) {
      text += static_cast<char>(character);
    } else {  // All below U+0800: two bytes.
      text += static_cast<char>(0xc0 | (character >> 6));
      text += static_cast<char>(0x80 | (character & 0x3f));
    }
  }
  return text;
}

std::optional<std::string> from_byte_alphabet(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    int character = static_cast<unsigned char>(text[i]);
    if (character >= 0x80) {
      const int next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
      if ((character & 0xe0) != 0xc0 || (next & 0xc0) != 0x80) {
        return std::nullopt;
      }
      character = ((character & 0x1f) << 6) | (next & 0x3f);
      ++i;
      if (character < 0x80) {  // An overlong form of ASCII.
        return std::nullopt;
      }
    }
    if (character >= kCharacters || kAlphabet.byte_of[static_cast<std::size_t>(character)] < 0) {
      return std::nullopt;
    }
    bytes += static_cast<char>(kAlphabet.byte_of[static_cast<std::size_t>(character)]);
  }
  return bytes;
}

}  // namespace decodelab
