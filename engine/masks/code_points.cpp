// Ranges of code points: their union, their complement, and their bytes.
#include "engine/masks/code_points.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/text.h"

namespace decodelab {
namespace {

constexpr char32_t kLastCodePoint = 0x10FFFF;
/// The last code point before the surrogates, and the first behind them.
constexpr char32_t kBeforeSurrogates = 0xD7FF;
constexpr char32_t kAfterSurrogates = 0xE000;
/// The last code points of 1, 2 and 3 bytes.
constexpr char32_t kLengthEnds[] = {0x7F, 0x7FF, 0xFFFF};
constexpr int kBitsOfAPlace = 6;

/// Writes the UTF-8 of a code point, and returns how many bytes it has.
int encode_utf8(char32_t point, std::array<std::uint8_t, 4>& bytes) {
  int length = 1;
  for (const char32_t end : kLengthEnds) {
    length += point > end ? 1 : 0;
  }
  if (length == 1) {
    bytes[0] = static_cast<std::uint8_t>(point);
    return 1;
  }
  for (int place = length - 1; place > 0; --place) {
    bytes[static_cast<std::size_t>(place)] = static_cast<std::uint8_t>(0x80 | (point & 0x3F));
    point >>= kBitsOfAPlace;
  }
  constexpr std::array<std::uint8_t, 5> kLead{0, 0, 0xC0, 0xE0, 0xF0};
  bytes[0] = static_cast<std::uint8_t>(kLead[static_cast<std::size_t>(length)] | point);
  return length;
}

/// Adds the sequences of a range, the first ones first.
void add_sequences(CodePointRange range, std::vector<ByteSequence>& sequences) {
  for (const char32_t end : kLengthEnds) {
    if (range.first <= end && end < range.last) {
      add_sequences({range.first, end}, sequences);
      add_sequences({end + 1, range.last}, sequences);
      return;
    }
  }
  // Splits where the places behind some place do not run over all of their values.
  for (int places = 1; places < 4 && range.first > kLengthEnds[0]; ++places) {
    const char32_t low = (char32_t{1} << (kBitsOfAPlace * places)) - 1;
    if ((range.first & ~low) == (range.last & ~low)) {
      break;
    }
    if ((range.first & low) != 0) {
      add_sequences({range.first, range.first | low}, sequences);
      add_sequences({(range.first | low) + 1, range.last}, sequences);
      return;
    }
    if ((range.last & low) != low) {
      add_sequences({range.first, (range.last & ~low) - 1}, sequences);
      add_sequences({range.last & ~low, range.last}, sequences);
      return;
    }
  }
  std::array<std::uint8_t, 4> first{};
  std::array<std::uint8_t, 4> last{};
  ByteSequence sequence{.places = {}, .length = encode_utf8(range.first, first)};
  encode_utf8(range.last, last);
  for (std::size_t place = 0; place < static_cast<std::size_t>(sequence.length); ++place) {
    sequence.places[place] = {first[place], last[place]};
  }
  sequences.push_back(sequence);
}

struct CodeDeleter {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct MatchDeleter {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

/// A text of every code point, and where each begins.
struct AllCodePoints {
  std::string text;
  std::vector<char32_t> point_at;  ///< By offset into the text; those of bytes within a code point are unused.
};

AllCodePoints all_code_points() {
  AllCodePoints all;
  for (char32_t point = 0; point <= kLastCodePoint; ++point) {
    point = point == kBeforeSurrogates + 1 ? kAfterSurrogates : point;
    std::array<std::uint8_t, 4> bytes{};
    const int length = encode_utf8(point, bytes);
    all.point_at.resize(all.text.size() + 1);
    all.point_at.back() = point;
    all.text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(length));
  }
  return all;
}

/// Returns the point before a boundary of the text.
char32_t point_before(char32_t point) { return point == kAfterSurrogates ? kBeforeSurrogates : point - 1; }

CodePoints find_class(const std::string& pcre2_class) {
  const std::string pattern = fmt::format("[{}]+", pcre2_class);
  int error = 0;
  PCRE2_SIZE error_at = 0;
  const std::unique_ptr<pcre2_code, CodeDeleter> code(pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF | PCRE2_UCP, &error, &error_at, nullptr));
  if (code == nullptr) {
    throw std::invalid_argument(fmt::format("{} is no class of characters that is known", in_quotes(pcre2_class)));
  }
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);  // Without it, matching is slower and no different.
  const std::unique_ptr<pcre2_match_data, MatchDeleter> match(
      pcre2_match_data_create_from_pattern(code.get(), nullptr));
  const AllCodePoints all = all_code_points();
  std::vector<CodePointRange> ranges;
  std::size_t from = 0;
  while (from < all.text.size() && pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(all.text.data()),
                                               all.text.size(), from, PCRE2_NO_UTF_CHECK, match.get(), nullptr) > 0) {
    const PCRE2_SIZE* const span = pcre2_get_ovector_pointer(match.get());
    const char32_t last = span[1] == all.text.size() ? kLastCodePoint : point_before(all.point_at[span[1]]);
    ranges.push_back({all.point_at[span[0]], last});
    from = span[1];
  }
  return CodePoints(ranges);
}

}  // namespace

CodePoints::CodePoints(const std::vector<CodePointRange>& ranges) {
  std::vector<CodePointRange> parts;
  for (const CodePointRange& range : ranges) {
    const CodePointRange below{range.first, std::min(range.last, kBeforeSurrogates)};
    const CodePointRange above{std::max(range.first, kAfterSurrogates), range.last};
    for (const CodePointRange& part : {below, above}) {
      if (part.first <= part.last) {
        parts.push_back(part);
      }
    }
  }
  std::ranges::sort(parts, {}, &CodePointRange::first);
  for (const CodePointRange& part : parts) {
    const bool joins =
        !ranges_.empty() && (part.first <= ranges_.back().last + 1 ||
                             (ranges_.back().last == kBeforeSurrogates && part.first == kAfterSurrogates));
    if (joins) {
      ranges_.back().last = std::max(ranges_.back().last, part.last);
    } else {
      ranges_.push_back(part);
    }
  }
}

void CodePoints::add(const CodePoints& other) {
  std::vector<CodePointRange> all = ranges_;
  all.insert(all.end(), other.ranges_.begin(), other.ranges_.end());
  *this = CodePoints(all);
}

CodePoints CodePoints::others() const {
  std::vector<CodePointRange> gaps;
  char32_t next = 0;
  for (const CodePointRange& range : ranges_) {
    if (range.first > next) {
      gaps.push_back({next, range.first - 1});
    }
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) {
    gaps.push_back({next, kLastCodePoint});
  }
  return CodePoints(gaps);
}

const CodePoints& code_points_of_class(std::string_view pcre2_class) {
  static std::mutex mutex;
  static std::map<std::string, CodePoints, std::less<>> known;
  const std::scoped_lock lock(mutex);
  const auto found = known.find(pcre2_class);
  return found != known.end() ? found->second
                              : known.emplace(pcre2_class, find_class(std::string(pcre2_class))).first->second;
}

std::vector<ByteSequence> utf8_sequences(const CodePoints& set) {
  std::vector<ByteSequence> sequences;
  for (CodePointRange range : set.ranges()) {
    // Ranges join over the surrogates, which have no bytes.
    if (range.first <= kBeforeSurrogates && range.last >= kAfterSurrogates) {
      add_sequences({range.first, kBeforeSurrogates}, sequences);
      range.first = kAfterSurrogates;
    }
    add_sequences(range, sequences);
  }
  return sequences;
}

}  // namespace decodelab
