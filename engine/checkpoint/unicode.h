// What tokenizers need to know about Unicode. utf8proc has the tables.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace decodelab {

/// Returns how many bytes the first character of `text` has, which is not empty; 1 for a byte that begins no character
/// in UTF-8.
std::size_t first_character_bytes(std::string_view text);

/// The normal forms of Unicode (Standard Annex 15).
enum class NormalForm : std::uint8_t { nfc, nfd, nfkc, nfkd };

/// Returns `text` in a normal form; bytes that are not UTF-8 stay as they are.
std::string in_normal_form(std::string_view text, NormalForm form);

/// Cuts `text` into extended grapheme clusters (Standard Annex 29), none of them empty. A byte that is not UTF-8 is one
/// of its own.
std::vector<std::string_view> graphemes(std::string_view text);

/// Returns `text` without white space (Unicode's property of this name) at its left and at its right end.
std::string_view without_spaces(std::string_view text, bool left, bool right);

}  // namespace decodelab
