// Parses regular expressions by descent.
#include "engine/masks/pattern.h"

#include <optional>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "base/text.h"

namespace decodelab {
namespace {

/// Groups within groups; each takes a frame of the stack.
constexpr int kMostDepth = 200;
/// Largest number of a repetition; the number of states limits what several of them multiply to.
constexpr int kMostRepetitions = 100'000;

class PatternParser {
 public:
  explicit PatternParser(std::string_view pattern) : pattern_(pattern) {}

  PatternNode parse() {
    if (pattern_.empty()) {
      throw std::invalid_argument("the pattern is empty: it would allow no token; leave it out, or write .*");
    }
    take_if("^");
    PatternNode whole = alternatives(0);
    if (!at_end()) {
      refuse("a ')' without its '('");
    }
    return whole;
  }

 private:
  [[noreturn]] void refuse(std::string_view what, std::string_view instead = "") const {
    throw std::invalid_argument(fmt::format("the pattern {} has {} at byte {}{}{}", in_quotes(pattern_), what, at_,
                                            instead.empty() ? "" : ": ", instead));
  }

  bool at_end() const { return at_ == pattern_.size(); }
  bool follows(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  bool take_if(std::string_view text) {
    const bool taken = follows(text);
    at_ += taken ? text.size() : 0;
    return taken;
  }

  PatternNode alternatives(int depth) {
    if (depth > kMostDepth) {
      refuse(fmt::format("groups within more than {} groups", kMostDepth));
    }
    PatternNode node = sequence(depth);
    if (!follows("|")) {
      return node;
    }
    PatternNode all{.kind = PatternNode::Kind::alternatives};
    all.children.push_back(std::move(node));
    while (take_if("|")) {
      all.children.push_back(sequence(depth));
    }
    return all;
  }

  PatternNode sequence(int depth) {
    PatternNode all{.kind = PatternNode::Kind::sequence};
    while (!at_end() && !follows("|") && !follows(")")) {
      if (depth == 0 && pattern_.substr(at_) == "$") {
        ++at_;
        break;
      }
      all.children.push_back(repeated(depth));
    }
    return all;
  }

  PatternNode repeated(int depth) {
    PatternNode node = atom(depth);
    const std::optional<std::pair<int, int>> times = repetition();
    if (!times) {
      return node;
    }
    if (follows("?")) {
      refuse("a lazy repetition", "it allows the same texts as without the '?'");
    }
    if (follows("+")) {
      refuse("a possessive repetition", "it is not regular");
    }
    if (follows("*") || count_follows()) {
      refuse("a repetition of a repetition", "put the first into a group");
    }
    PatternNode all{.kind = PatternNode::Kind::repeated, .least = times->first, .most = times->second};
    all.children.push_back(std::move(node));
    return all;
  }

  std::optional<std::pair<int, int>> repetition() {
    if (take_if("*")) {
      return std::pair(0, PatternNode::kUnlimited);
    }
    if (take_if("+")) {
      return std::pair(1, PatternNode::kUnlimited);
    }
    if (take_if("?")) {
      return std::pair(0, 1);
    }
    if (!count_follows()) {
      return std::nullopt;
    }
    ++at_;
    const int least = follows(",") ? 0 : number();
    const int most = !take_if(",") ? least : follows("}") ? PatternNode::kUnlimited : number();
    if (!take_if("}")) {
      refuse("a '{' without its '}'");
    }
    if (most < least) {
      refuse(fmt::format("a repetition of at least {} and at most {}", least, most));
    }
    return std::pair(least, most);
  }

  /// Returns whether a count follows; any other '{' is refused where an atom is expected.
  bool count_follows() const {
    const char next = at_ + 1 < pattern_.size() ? pattern_[at_ + 1] : '\0';
    return follows("{") && ((next >= '0' && next <= '9') || next == ',');
  }

  int number() {
    int value = 0;
    const std::size_t begin = at_;
    for (; !at_end() && pattern_[at_] >= '0' && pattern_[at_] <= '9'; ++at_) {
      value = value * 10 + (pattern_[at_] - '0');
      if (value > kMostRepetitions) {
        refuse(fmt::format("more than {} repetitions", kMostRepetitions));
      }
    }
    if (at_ == begin) {
      refuse("no number where a repetition needs one");
    }
    return value;
  }

  PatternNode atom(int depth) {
    if (take_if("(")) {
      return group(depth);
    }
    if (take_if("[")) {
      return one_of(bracketed());
    }
    if (take_if(".")) {
      return one_of(CodePoints({{U'\n', U'\n'}}).others());
    }
    if (follows("^") || follows("$")) {
      refuse(fmt::format("'{}' within it", pattern_[at_]), "the whole text matches the whole pattern");
    }
    if (follows("*") || follows("+") || follows("?") || follows("{")) {
      refuse(fmt::format("nothing before '{}' that it could repeat", pattern_[at_]),
             fmt::format("the character itself is \\{}", pattern_[at_]));
    }
    if (follows("\\")) {
      return one_of(escape(false));
    }
    const char32_t point = character();
    return one_of(CodePoints({{point, point}}));
  }

  static PatternNode one_of(CodePoints points) {
    return {.kind = PatternNode::Kind::one_of, .points = std::move(points)};
  }

  PatternNode group(int depth) {
    if (follows("*")) {
      refuse("a verb '(*'", "it is not regular");
    }
    if (take_if("?")) {
      if (follows("=") || follows("!") || follows("<=") || follows("<!")) {
        refuse("a look-around", "it is not regular here; write what may follow instead");
      }
      if (follows(">")) {
        refuse("an atomic group", "it is not regular");
      }
      if (follows("P=") || follows("&") || follows("P>") || follows("R")) {
        refuse("a reference to a group", "it is not regular");
      }
      if (take_if("P<") || take_if("<")) {
        const std::size_t end = pattern_.find('>', at_);
        if (end == std::string_view::npos || end == at_) {
          refuse("a group whose name does not end");
        }
        at_ = end + 1;
      } else if (!take_if(":")) {
        refuse("inline flags, or a kind of group that is not known", "use (..), (?:..) or (?<name>..)");
      }
    }
    PatternNode inner = alternatives(depth + 1);
    if (!take_if(")")) {
      refuse("a '(' without its ')'");
    }
    return inner;
  }

  /// Parses what follows a '\'. Between brackets, \b is a backspace.
  CodePoints escape(bool in_brackets) {
    ++at_;
    if (at_end()) {
      refuse("a '\\' at its end");
    }
    const char kind = pattern_[at_];
    switch (kind) {
      case 'n': return literal(U'\n');
      case 't': return literal(U'\t');
      case 'r': return literal(U'\r');
      case 'f': return literal(U'\f');
      case 'v': return literal(U'\v');
      case 'a': return literal(U'\a');
      case 'e': return literal(U'\x1B');
      case '0': return literal(U'\0');
      case 'x': return hexadecimal(2);
      case 'u': return hexadecimal(4);
      case 'U': return hexadecimal(8);
      case 'd': return named("\\p{Nd}", false);
      case 'D': return named("\\p{Nd}", true);
      case 's': return named(kSpaces, false);
      case 'S': return named(kSpaces, true);
      case 'w': return named(kWordCharacters, false);
      case 'W': return named(kWordCharacters, true);
      case 'p':
      case 'P': return property(kind == 'P');
      case 'b':
        if (in_brackets) {
          return literal(U'\b');
        }
        refuse("\\b", "what a text may be does not depend on the characters around it; leave it out");
      case 'B': refuse("\\B", "leave it out");
      case 'A':
      case 'z':
      case 'Z': refuse(fmt::format("'\\{}'", kind), "the whole text matches the whole pattern; leave it out");
      case 'k':
      case 'g': refuse("a back-reference", "it is not regular");
      default: break;
    }
    if (kind >= '1' && kind <= '9') {
      refuse("a back-reference", "it is not regular");
    }
    if ((kind >= 'a' && kind <= 'z') || (kind >= 'A' && kind <= 'Z')) {
      refuse(fmt::format("'\\{}', which is not known", kind));
    }
    const char32_t point = character();
    return CodePoints({{point, point}});
  }

  CodePoints literal(char32_t point) {
    ++at_;
    return CodePoints({{point, point}});
  }

  CodePoints named(std::string_view pcre2_class, bool negated) {
    ++at_;
    const CodePoints& points = code_points_of_class(pcre2_class);
    return negated ? points.others() : points;
  }

  CodePoints property(bool negated) {
    ++at_;
    std::string_view name = pattern_.substr(at_, 1);
    if (take_if("{")) {
      const std::size_t end = pattern_.find('}', at_);
      if (end == std::string_view::npos) {
        refuse("a '{' without its '}'");
      }
      name = pattern_.substr(at_, end - at_);
      at_ = end + 1;
    } else {
      at_ += name.size();
    }
    if (name.starts_with("^")) {
      negated = !negated;
      name.remove_prefix(1);
    }
    if (name.empty() ||
        name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_&= ") != std::string_view::npos) {
      refuse("a property without a name that could be one");
    }
    const CodePoints& points = code_points_of_class(fmt::format("\\p{{{}}}", name));
    return negated ? points.others() : points;
  }

  CodePoints hexadecimal(std::size_t digits) {
    ++at_;
    const bool braces = take_if("{");
    char32_t value = 0;
    std::size_t count = 0;
    for (; !at_end() && count < (braces ? 8 : digits); ++at_, ++count) {
      const char c = pattern_[at_];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) {
        break;
      }
      value = value * 16 + static_cast<char32_t>(digit);
    }
    if (count == 0 || (!braces && count < digits) || (braces && !take_if("}")) || value > 0x10FFFF) {
      refuse("a hexadecimal escape that names no character", "write \\x41, \\u0041 or \\x{1F600}");
    }
    return CodePoints({{value, value}});
  }

  CodePoints bracketed() {
    const bool negated = take_if("^");
    CodePoints points;
    for (bool first = true; first || !follows("]"); first = false) {
      if (at_end()) {
        refuse("a '[' without its ']'");
      }
      if (first && follows("]")) {
        refuse("a ']' first between brackets", "write \\]");
      }
      if (follows("[") || follows("&&") || follows("--") || follows("~~")) {
        refuse("a set of sets, or a '[' between brackets", "write \\[ for the character");
      }
      points.add(member());
    }
    ++at_;
    return negated ? points.others() : points;
  }

  /// Parses a character, a class, or a range between brackets.
  CodePoints member() {
    const std::optional<char32_t> first = single();
    if (!first) {
      return std::move(class_);
    }
    const bool range = follows("-") && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']';
    if (!range) {
      return CodePoints({{*first, *first}});
    }
    ++at_;
    const std::optional<char32_t> last = single();
    if (!last || *last < *first) {
      refuse("a range between brackets that does not end, or ends before it begins");
    }
    return CodePoints({{*first, *last}});
  }

  /// Parses one character; nothing where it is a class, which then stands in `class_`.
  std::optional<char32_t> single() {
    if (!follows("\\")) {
      return character();
    }
    const char kind = at_ + 1 < pattern_.size() ? pattern_[at_ + 1] : '\0';
    CodePoints points = escape(true);
    if (std::string_view("dDsSwWpP").find(kind) != std::string_view::npos) {
      class_ = std::move(points);
      return std::nullopt;
    }
    if (points.empty()) {
      refuse("a surrogate, which no text has");
    }
    return points.ranges().front().first;
  }

  /// Takes one character of UTF-8.
  char32_t character() {
    if (at_end()) {
      refuse("nothing where a character is expected");
    }
    const auto lead = static_cast<std::uint8_t>(pattern_[at_]);
    const std::size_t length = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    char32_t point = length == 1 ? lead : lead & (0xFF >> (length + 1));
    bool whole = (lead < 0x80 || lead >= 0xC2) && lead <= 0xF4 && at_ + length <= pattern_.size();
    for (std::size_t place = 1; whole && place < length; ++place) {
      const auto byte = static_cast<std::uint8_t>(pattern_[at_ + place]);
      whole = (byte & 0xC0) == 0x80;
      point = point << 6 | (byte & 0x3F);
    }
    const CodePoints known = CodePoints({{point, point}});
    if (!whole || known.empty() || point > 0x10FFFF) {
      refuse("a byte that is not UTF-8");
    }
    at_ += length;
    return point;
  }

  /// White_Space, and what Unicode's technical standard 18 counts as parts of words, as Rust's and Python's modules do.
  static constexpr std::string_view kSpaces = R"(\x{09}-\x{0d}\x{85}\p{Z})";
  static constexpr std::string_view kWordCharacters = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control})";

  std::string_view pattern_;
  std::size_t at_ = 0;
  CodePoints class_;
};

}  // namespace

PatternNode parse_pattern(std::string_view pattern) { return PatternParser(pattern).parse(); }

}  // namespace decodelab
