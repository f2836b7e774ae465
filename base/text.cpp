// Decodes UTF-8 character by character, replaces unsafe characters, and breaks lines.
#include "base/text.h"

#include <charconv>
#include <cstdint>

#include <fmt/format.h>

namespace decodelab {
namespace {

constexpr const char* kReplacement = "\xef\xbf\xbd";
constexpr std::size_t kMaxQuoted = 80;  // Bytes of a hostile name that a message shows.
constexpr const char* kEllipsis = "\xe2\x80\xa6";

struct Character {
  std::size_t bytes = 1;
  std::uint32_t code = 0;
  bool valid = false;
};

// Decodes the first character of `text`, which is not empty (Unicode 15, table 3-7: no overlong forms, no surrogates).
Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) {
    return {1, lead, true};
  }
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) {
    return {};
  }
  std::uint32_t code = lead & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) {
      return {};
    }
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
    return {};
  }
  return {bytes, code, true};
}

bool is_blank(std::uint32_t code) {
  const bool control = code <= 0x20 || (code >= 0x7f && code <= 0x9f);
  const bool turns = (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
                     (code >= 0x2066 && code <= 0x2069) || code == 0x061c;
  return control || turns || code == 0xfffe || code == 0xffff;
}

}  // namespace

std::string one_line(std::string_view text, std::size_t limit) {
  std::string line;
  std::size_t characters = 0;
  bool space = false;
  while (!text.empty()) {
    const Character next = first_of(text);
    const std::string_view bytes = text.substr(0, next.bytes);
    text.remove_prefix(next.bytes);
    if (next.valid && is_blank(next.code)) {
      space = !line.empty();
      continue;
    }
    if (characters + (space ? 2 : 1) > limit) {
      return line + kEllipsis;
    }
    if (next.code == '[' && !space && line.ends_with("##")) {
      space = true;
    }
    if (space) {
      line += ' ';
      ++characters;
    }
    line += next.valid ? bytes : std::string_view(kReplacement);
    ++characters;
    space = false;
  }
  return line;
}

std::string folded(std::string_view text, std::size_t width) {
  std::string result;
  std::size_t column = 0;
  std::string_view rest;
  const std::string wrapped = wrap(text, width);
  for (rest = wrapped; !rest.empty();) {
    const std::size_t bytes = first_of(rest).bytes;
    if (rest.front() == '\n') {
      column = 0;
    } else {
      if (column == width) {
        result += '\n';
        column = 0;
      }
      if (column == 0 && rest.starts_with("::")) {
        result += "| ";
        column = 2;
      }
      ++column;
    }
    result += rest.substr(0, bytes);
    rest.remove_prefix(bytes);
  }
  return result;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (const char c : text) {
    width += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }
  return width;
}

std::string shortened(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) {
    return std::string(text);
  }
  constexpr std::string_view kDots = "...";
  const bool with_dots = width > kDots.size();
  std::string kept;
  for (const char letter : text) {
    const bool begins = (static_cast<unsigned char>(letter) & 0xC0) != 0x80;  // Never cuts inside of a UTF-8 character.
    if (begins && display_width(kept) + (with_dots ? kDots.size() : 0) == width) {
      break;
    }
    kept += letter;
  }
  return kept + std::string(with_dots ? kDots : "");
}

std::string wrap(std::string_view text, std::size_t width) {
  std::string result;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of(" \n");
    const std::string_view word = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (word.empty()) {
      continue;
    }
    if (column > 0 && column + 1 + display_width(word) > width) {
      result += '\n';
      column = 0;
    }
    if (column > 0) {
      result += ' ';
    }
    result += word;
    column += (column > 0 ? 1 : 0) + display_width(word);
  }
  return result;
}

std::string printable_ascii(std::string_view text, std::size_t limit) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (result.size() >= limit) {
      return result + "...";
    }
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte < 0x7f) {
      result += text[i];
    } else {
      result += fmt::format("\\x{:02x}", byte);
    }
  }
  return result;
}

std::string in_quotes(std::string_view text) { return "'" + printable_ascii(text, kMaxQuoted) + "'"; }

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n\r\f\v";
  const std::size_t first = text.find_first_not_of(kSpaces);
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace decodelab
