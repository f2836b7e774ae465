// Makes untrusted text harmless to print, and breaks lines to a width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace decodelab {

/// Most characters of an untrusted text that a report shows: nothing longer is a name, and the start of a longer reason
/// is enough.
inline constexpr std::size_t kOutsideText = 300;

/// Returns the text on one line, as valid UTF-8, with at most `limit` characters and then an ellipsis.
///
/// Control characters (terminal escapes, line breaks), characters that turn the direction of writing, and those that
/// XML 1.0 does not know become spaces, and several spaces become one. Bytes that are no UTF-8 become U+FFFD. `##[`,
/// which GitHub's runner reads as a command anywhere in a line, becomes `## [`.
std::string one_line(std::string_view text, std::size_t limit = kOutsideText);

/// Breaks text into lines of at most `width` columns, at spaces and within words that are longer. No line begins with
/// `::`, which GitHub's runner would read as a command.
std::string folded(std::string_view text, std::size_t width);

/// Returns the columns that a terminal uses for UTF-8 text: code points, not bytes.
std::size_t display_width(std::string_view text);
/// Returns the text, cut so that it has at most `width` columns with the "..." that says so; where there is no room for
/// a letter beside that, without it.
std::string shortened(std::string_view text, std::size_t width);
/// Breaks text at spaces into lines of at most `width` columns; a longer word stands alone.
std::string wrap(std::string_view text, std::size_t width);

/// Returns the text with every byte that is not printable ASCII as \xNN, and an ellipsis in place of what is longer
/// than `limit`.
std::string printable_ascii(std::string_view text, std::size_t limit);
/// Returns a name or value out of a file, fit for a message: in single quotes, at most 80 bytes, as printable_ascii().
std::string in_quotes(std::string_view text);
/// Returns the integer that the whole text spells, or nothing.
std::optional<std::int64_t> whole_number(std::string_view text);

/// Returns the text without the white space around it.
std::string_view trimmed(std::string_view text);

}  // namespace decodelab
