// Replaces the characters that mean something to HTML, Markdown and CSV.
#include "base/escape.h"

namespace decodelab {
namespace {

// Replaces each character with what `replacement(character, the next character or 0)` returns, and keeps the characters
// for which that is empty.
std::string replace_each(std::string_view text, auto&& replacement) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (const std::string_view other = replacement(text[i], next); !other.empty()) {
      result += other;
    } else {
      result += text[i];
    }
  }
  return result;
}

}  // namespace

std::string escape_html(std::string_view text) {
  return replace_each(text, [](char c, char) -> std::string_view {
    switch (c) {
      case '&': return "&amp;";
      case '<': return "&lt;";
      case '>': return "&gt;";
      case '"': return "&quot;";
      case '\'': return "&#39;";
      default: return {};
    }
  });
}

std::string escape_markdown(std::string_view text) {
  return replace_each(text, [](char c, char next) -> std::string_view {
    switch (c) {
      case '&': return "&amp;";
      case '<': return "&lt;";
      case '>': return "&gt;";
      case '|': return "\\|";
      case '\\': return "\\\\";
      case '`': return "\\`";
      case '*': return "\\*";
      case '_': return "\\_";
      case ']': return next == '(' || next == '[' || next == ':' ? "\\]" : std::string_view();  // else it ends no link
      case '\n':
      case '\r': return " ";
      default: return {};
    }
  });
}

std::string escape_csv(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    return std::string(text);
  }
  return '"' +
         replace_each(text, [](char c, char) { return c == '"' ? std::string_view("\"\"") : std::string_view(); }) +
         '"';
}

}  // namespace decodelab
