// Makes text harmless where HTML, Markdown or CSV would take a character of it for their own.
#pragma once

#include <string>
#include <string_view>

namespace decodelab {

/// Returns text that is safe between tags and in double-quoted attributes.
std::string escape_html(std::string_view text);
/// Returns text that is safe in a cell of a Markdown table and in running text: no tag, link, emphasis or column break.
std::string escape_markdown(std::string_view text);
/// Returns a field of RFC 4180.
std::string escape_csv(std::string_view text);

}  // namespace decodelab
