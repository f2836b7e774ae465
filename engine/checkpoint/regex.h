// The regular expressions of tokenizers: Oniguruma's syntax as far as it means the same to PCRE2.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace decodelab {

/// Holds a stretch of a text: bytes [begin, end), and whether the pattern matched them or they lie between matches.
struct TextSpan {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool matched = false;
};

/// Returns the same pattern for PCRE2 (UTF and UCP), with \s spelled out: PCRE2 counts U+180E as a space, Unicode does
/// not.
///
/// Throws std::invalid_argument for what the two libraries understand differently: \w \b \h and their like, ^ and $,
/// inline flags but (?i:...), nested classes and && within them, `}+`, verbs.
std::string pcre2_pattern(std::string_view oniguruma_pattern);

/// Holds a compiled pattern; may be used from several threads at once.
class Regex {
 public:
  /// Throws std::invalid_argument for a pattern that pcre2_pattern() or PCRE2 refuses.
  explicit Regex(std::string_view oniguruma_pattern);

  /// Returns all of `text` in order: matches (perhaps empty ones) and what lies between them. Bytes that are not UTF-8
  /// match nothing. Throws std::invalid_argument when PCRE2 gives up on the pattern (too many steps).
  std::vector<TextSpan> split(std::string_view text) const;
  /// Returns `text` with `content` in the place of every match. Throws as split().
  std::string replace(std::string_view text, std::string_view content) const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
};

}  // namespace decodelab
