// What tokenizers need to know about Unicode.
#include "engine/checkpoint/unicode.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>

#include <fmt/format.h>
#include <utf8proc.h>

namespace decodelab {
namespace {

/// A character at the beginning of a text; `code` is -1 for a byte that begins none.
struct Character {
  utf8proc_int32_t code = -1;
  std::size_t bytes = 1;
};

Character first_character(std::string_view text) {
  Character first;
  const utf8proc_ssize_t bytes =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                       static_cast<utf8proc_ssize_t>(std::min<std::size_t>(text.size(), 4)), &first.code);
  if (bytes < 1) {
    return {};
  }
  first.bytes = static_cast<std::size_t>(bytes);
  return first;
}

/// Returns how many bytes at the beginning of `text` are UTF-8.
std::size_t valid_bytes(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Character next = first_character(text.substr(at));
    if (next.code < 0) {
      break;
    }
    at += next.bytes;
  }
  return at;
}

int options_of(NormalForm form) {
  switch (form) {
    case NormalForm::nfc: return UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    case NormalForm::nfd: return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    case NormalForm::nfkc: return UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
    case NormalForm::nfkd: break;
  }
  return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
}

void append_in_normal_form(std::string& to, std::string_view text, NormalForm form) {
  const bool ascii = std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (ascii) {
    to += text;
    return;
  }
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &mapped, static_cast<utf8proc_option_t>(options_of(form)));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  if (bytes == UTF8PROC_ERROR_NOMEM) {
    throw std::bad_alloc();
  }
  if (bytes < 0) {
    throw std::invalid_argument(
        fmt::format("a text of {} bytes could not be normalized: {}", text.size(), utf8proc_errmsg(bytes)));
  }
  to.append(reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(bytes));
}

bool is_white_space(utf8proc_int32_t code) {
  // The property White_Space, complete: PropList.txt of Unicode.
  constexpr std::array<utf8proc_int32_t, 9> kAlone{0x20, 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000};
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x2000 && code <= 0x200A) ||
         std::ranges::find(kAlone, code) != kAlone.end();
}

}  // namespace

std::size_t first_character_bytes(std::string_view text) { return first_character(text).bytes; }

std::string in_normal_form(std::string_view text, NormalForm form) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t valid = valid_bytes(text);
    append_in_normal_form(result, text.substr(0, valid), form);
    text.remove_prefix(valid);
    if (!text.empty()) {
      result += text.front();
      text.remove_prefix(1);
    }
  }
  return result;
}

std::vector<std::string_view> graphemes(std::string_view text) {
  std::vector<std::string_view> found;
  std::size_t begin = 0;
  utf8proc_int32_t previous = -1;
  utf8proc_int32_t state = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Character next = first_character(text.substr(at));
    const bool breaks = previous < 0 || next.code < 0 || utf8proc_grapheme_break_stateful(previous, next.code, &state);
    if (breaks && at != begin) {
      found.push_back(text.substr(begin, at - begin));
      begin = at;
    }
    if (next.code < 0) {
      state = 0;
    }
    previous = next.code;
    at += next.bytes;
  }
  if (begin != text.size()) {
    found.push_back(text.substr(begin));
  }
  return found;
}

std::string_view without_spaces(std::string_view text, bool left, bool right) {
  std::size_t begin = 0;
  std::size_t end = 0;  // Behind the last character that is no space.
  bool within = false;
  for (std::size_t at = 0; at < text.size();) {
    const Character next = first_character(text.substr(at));
    if (!is_white_space(next.code)) {
      begin = within ? begin : at;
      within = true;
      end = at + next.bytes;
    }
    at += next.bytes;
  }
  if (!within) {
    return left || right ? text.substr(0, 0) : text;
  }
  begin = left ? begin : 0;
  return text.substr(begin, (right ? end : text.size()) - begin);
}

}  // namespace decodelab
