// Cuts names at brackets that are balanced.
#include "profiles/trace/names.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace decodelab {
namespace {

constexpr std::array<std::string_view, 2> kUnnamed{"(anonymous namespace)::", "<unnamed>::"};
constexpr std::string_view kFolded = "<...>";
/// PyTorch puts such tails with a number behind the names of its NVTX ranges, which would make each name different.
constexpr std::array<std::string_view, 3> kTails{", op_id = ", ", seq = ", ", sizes = "};

std::string without_unnamed(std::string_view name) {
  std::string text(name);
  for (const std::string_view unnamed : kUnnamed) {
    for (std::size_t at = text.find(unnamed); at != std::string::npos; at = text.find(unnamed, at)) {
      text.erase(at, unnamed.size());
    }
  }
  return text;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// A '<' behind a word opens template arguments; in "operator<" and "a < b" it does not.
bool opens_arguments(std::string_view name, std::size_t at) {
  return at > 0 && is_word(name[at - 1]) && !name.substr(0, at).ends_with("operator");
}

/// Returns the place behind the bracket that closes the one at `at`, or npos where none does.
std::size_t behind_arguments(std::string_view name, std::size_t at) {
  int depth = 0;
  int round = 0;
  for (std::size_t i = at; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '(') {
      ++round;
    }
    if (c == ')') {
      --round;
    }
    if (round > 0) {
      continue;
    }
    if (c == '<') {
      ++depth;
    }
    if (c == '>' && (i == 0 || name[i - 1] != '-') && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

}  // namespace

std::string short_name(std::string_view name) {
  for (const std::string_view tail : kTails) {
    name = name.substr(0, std::min(name.find(tail), name.size()));
  }
  std::string whole = without_unnamed(name);
  const bool is_function = whole.find('(') != std::string::npos && whole.back() == ')';
  const bool is_template = whole.find('<') != std::string::npos && whole.find('>') != std::string::npos;
  if (!is_function && !is_template) {
    return whole;
  }
  std::string text;
  for (std::size_t i = 0; i < whole.size();) {
    const bool opens = whole[i] == '<' && opens_arguments(whole, i);
    const std::size_t behind = opens ? behind_arguments(whole, i) : std::string::npos;
    if (behind != std::string::npos) {
      text += kFolded;
      i = behind;
    } else if (is_function && whole[i] == '(' && i > 0 && !text.ends_with("operator")) {
      break;  // Parameters.
    } else {
      text += whole[i++];
    }
  }
  // What stands before the last blank is the return type, which only templates have in their names.
  if (is_function) {
    text.erase(0, std::min(text.rfind(' ') + 1, text.size()));
  }
  return text.empty() ? whole : text;
}

std::string range_kind(std::string_view name) {
  std::string text = short_name(name);
  const std::size_t bracket = text.find(" (");
  if (text.ends_with(')') && bracket != std::string::npos && bracket > 0) {
    text.resize(bracket);
  }
  return text;
}

}  // namespace decodelab
