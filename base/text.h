// Text that others wrote made harmless, and lines broken to a width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace decodelab {

/// Longest text from outside in a report, in characters: what is longer is no name, and a reason is told by its start.
inline constexpr std::size_t kOutsideText = 300;

/// The text on one line, as valid UTF-8, at most `limit` characters and then an ellipsis.
///
/// Control characters (terminal escapes, line breaks), characters that turn the direction of writing, and those that
/// XML 1.0 does not know become spaces, several spaces one; bytes that are no UTF-8 become U+FFFD. `##[`, which
/// GitHub's runner takes for a command wherever it stands, becomes `## [`.
std::string one_line(std::string_view text, std::size_t limit = kOutsideText);

/// Lines of at most `width` columns: broken at spaces, and within words that are longer. No line begins with `::`,
/// which GitHub's runner would take for a command.
std::string folded(std::string_view text, std::size_t width);

/// Returns the columns that a terminal uses for UTF-8 text: code points, not bytes.
std::size_t display_width(std::string_view text);
/// Breaks text at spaces into lines of at most `width` columns; a longer word stands alone.
std::string wrap(std::string_view text, std::size_t width);

/// Returns the text with every byte that is not printable ASCII as \xNN, and an ellipsis in place of what is longer
/// than `limit`.
std::string printable_ascii(std::string_view text, std::size_t limit);
/// Returns a name or value out of a file, fit for a message: in single quotes, at most 80 bytes, as printable_ascii().
std::string in_quotes(std::string_view text);
/// Returns the number that the whole text is, or nothing.
std::optional<std::int64_t> whole_number(std::string_view text);

}  // namespace decodelab
