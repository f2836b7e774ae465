// Checks and translates a pattern in Oniguruma's syntax for PCRE2.
#include <stdexcept>

#include <fmt/format.h>

#include "base/text.h"
#include "engine/checkpoint/regex.h"

namespace decodelab {
namespace {

// Unicode's White_Space: control characters and separators. \p{Z} comes last: a '-' after it stays a plain character.
constexpr std::string_view kSpaces = R"(\x{09}-\x{0d}\x{85}\p{Z})";
// What may follow "(?": the rest are flags and names, which the two libraries read differently.
constexpr std::string_view kGroups[] = {":", "i:", "=", "!", "<=", "<!", ">"};
// Escapes with one meaning; besides them \s, \S, \p{...}, \P{...}, \x and punctuation.
constexpr std::string_view kSameEscapes = "dDnrtf";

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  std::string translate() {
    while (at_ < pattern_.size()) {
      if (pattern_[at_] == '\\') {
        take_escape();
      } else if (in_class_) {
        take_in_class();
      } else {
        take_outside();
      }
    }
    return result_;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw std::invalid_argument(
        fmt::format("the pattern {} has {}, which is not supported", in_quotes(pattern_), what));
  }
  bool follows(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  void take(std::size_t count) {
    result_ += pattern_.substr(at_, count);
    at_ += count;
  }

  void take_escape() {
    if (at_ + 1 >= pattern_.size()) {
      refuse("a '\\' at its end");
    }
    const char escaped = pattern_[at_ + 1];
    if (escaped == 's' || escaped == 'S') {
      take_space(escaped == 'S');
      return;
    }
    const bool alphanumeric =
        (escaped >= 'a' && escaped <= 'z') || (escaped >= 'A' && escaped <= 'Z') || (escaped >= '0' && escaped <= '9');
    const bool property =
        (escaped == 'p' || escaped == 'P' || escaped == 'x') && at_ + 2 < pattern_.size() && pattern_[at_ + 2] == '{';
    if (alphanumeric && !property && kSameEscapes.find(escaped) == std::string_view::npos) {
      refuse(fmt::format("'\\{}'", escaped));
    }
    const std::size_t end = property ? pattern_.find('}', at_) : at_ + 1;
    if (end == std::string_view::npos) {
      refuse("a '{' without its '}'");
    }
    take(end + 1 - at_);
  }

  void take_space(bool negated) {
    if (in_class_ && negated) {
      refuse("'\\S' between brackets");
    }
    result_ += in_class_ ? std::string(kSpaces) : fmt::format("[{}{}]", negated ? "^" : "", kSpaces);
    at_ += 2;
  }

  void take_in_class() {
    if (follows("[") || follows("&&")) {
      refuse("a class within a class");
    }
    in_class_ = !follows("]");
    take(1);
  }

  void take_outside() {
    if (follows("^") || follows("$") || follows("(*") || follows("}+")) {
      refuse(fmt::format("'{}' outside of brackets",
                         pattern_.substr(at_, pattern_[at_] == '^' || pattern_[at_] == '$' ? 1 : 2)));
    }
    if (follows("(?")) {
      at_ += 2;
      for (const std::string_view group : kGroups) {
        if (follows(group)) {
          result_ += "(?";
          take(group.size());
          return;
        }
      }
      refuse("an inline flag or a named group");
    }
    if (follows("[")) {
      in_class_ = true;
      take(follows("[^") ? 2 : 1);
      if (follows("]")) {
        refuse("a ']' first between brackets");
      }
      return;
    }
    take(1);
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
  bool in_class_ = false;
  std::string result_;
};

}  // namespace

std::string pcre2_pattern(std::string_view oniguruma_pattern) { return Translator(oniguruma_pattern).translate(); }

}  // namespace decodelab
