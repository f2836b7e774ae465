// Sets of Unicode code points, and the byte sequences of UTF-8 that they are.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace decodelab {

/// Code points from first to last, both included.
struct CodePointRange {
  char32_t first = 0;
  char32_t last = 0;
  bool operator==(const CodePointRange&) const = default;
};

/// A set of code points as ranges in order, with a gap between any two; surrogates are never in it, since no UTF-8 text
/// has them.
class CodePoints {
 public:
  CodePoints() = default;
  /// Ranges may come in any order and overlap.
  explicit CodePoints(const std::vector<CodePointRange>& ranges);

  void add(const CodePoints& other);
  /// Returns all code points that are not in this set.
  CodePoints others() const;
  const std::vector<CodePointRange>& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }

 private:
  std::vector<CodePointRange> ranges_;
};

/// Returns the code points that a class of PCRE2 matches, such as `\p{L}` or `\d`. The first call for a class looks at
/// every code point, which takes some 10 ms; later ones return what it found. Throws std::invalid_argument for a class
/// that PCRE2 does not know.
const CodePoints& code_points_of_class(std::string_view pcre2_class);

/// Bytes of one place of a sequence, from first to last, both included.
struct ByteRange {
  std::uint8_t first = 0;
  std::uint8_t last = 0;
};

/// 1 to 4 places, each with a range of bytes: every choice of bytes is the UTF-8 of a code point.
struct ByteSequence {
  std::array<ByteRange, 4> places{};
  int length = 0;
};

/// Returns sequences whose choices are exactly the UTF-8 of the code points, in order (the algorithm of RE2 and of
/// Rust's utf8-ranges: a range is split where the number of bytes changes, and where a byte does not run over all of
/// its values).
std::vector<ByteSequence> utf8_sequences(const CodePoints& set);

}  // namespace decodelab
