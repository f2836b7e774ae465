// The printable characters that byte-level tokenizers write bytes as.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace decodelab {

/// Returns `bytes` in GPT-2's alphabet, as UTF-8: printable Latin-1 stands for itself, the 68 other bytes for U+0100
/// on, in order (github.com/openai/gpt-2, src/encoder.py, bytes_to_unicode).
std::string to_byte_alphabet(std::string_view bytes);

/// Returns the bytes that `text` stands for; nothing when it is not UTF-8 or has a character that is not in the
/// alphabet.
std::optional<std::string> from_byte_alphabet(std::string_view text);

}  // namespace decodelab
