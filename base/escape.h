// Escapes text for HTML, Markdown and CSV, so that none of its characters is read as syntax.
#pragma once

#include <string>
#include <string_view>

namespace decodelab {

/// Returns text that is safe between tags and in double-quoted attributes.
std::string escape_html(std::string_view text);
/// Returns text that is safe in a cell of a Markdown table and in running text: no tag, link, emphasis or column break.
std::string escape_markdown(std::string_view text);
/// Returns the text as one field of RFC 4180, quoted where it holds a comma, a quote or a line break.
std::string escape_csv(std::string_view text);

}  // namespace decodelab
