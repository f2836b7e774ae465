// The characters that a SentencePiece model replaces before it cuts a text: the table that its trainer compiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace decodelab {

/// Replaces characters by a table (`precompiled_charsmap` of SentencePiece; Kudo and Richardson 2018,
/// arXiv:1808.06226): a double-array trie (Darts) over the bytes of characters, and the texts that it leads to.
class PrecompiledMap {
 public:
  /// Reads the table: the bytes of the trie (32 bits, little-endian), the trie, and texts that end with a zero byte.
  /// Throws std::invalid_argument for a table whose sizes do not match.
  explicit PrecompiledMap(std::string_view table);

  /// Returns `text` with what the table replaces. As in Hugging Face's tokenizers, which this follows to the letter, a
  /// grapheme cluster of under six bytes is replaced whole by the text of the shortest entry that it begins with; of
  /// larger ones, and of those that begin with no entry, every character is.
  std::string replaced(std::string_view text) const;

 private:
  std::optional<std::string_view> replacement_of(std::string_view characters) const;
  std::uint32_t unit(std::size_t index) const { return index < units_.size() ? units_[index] : 0; }

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

/// Returns the bytes that a text in base64 stands for (RFC 4648, with padding); nothing for any other text.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace decodelab
