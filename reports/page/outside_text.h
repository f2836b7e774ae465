// Text that others wrote (names, labels, reasons) made harmless before it stands in a report.
#pragma once

#include <string>
#include <string_view>

namespace decodelab {

/// Longest text from outside in a report, in characters: what is longer is no name, and a reason is told by its start.
inline constexpr std::size_t kOutsideText = 300;

/// The text on one line, as valid UTF-8, at most `limit` characters and then an ellipsis.
///
/// Control characters (terminal escapes, line breaks), characters that turn the direction of writing, and those that XML 1.0 does not
/// know become spaces, several spaces one; bytes that are no UTF-8 become U+FFFD. `##[`, which GitHub's runner takes for a command
/// wherever it stands, becomes `## [`.
std::string one_line(std::string_view text, std::size_t limit = kOutsideText);

/// Lines of at most `width` columns: broken at spaces, and within words that are longer. No line begins with `::`, which GitHub's
/// runner would take for a command.
std::string folded(std::string_view text, std::size_t width);

}  // namespace decodelab
