// Regular expressions as automata over bytes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace decodelab {

/// A nondeterministic automaton that reads bytes (Thompson 1968): from each state one range of bytes leads on, or two
/// other states are reached without a byte.
struct ByteNfa {
  enum class Kind : std::uint8_t {
    range,   ///< A byte from first to last leads to `next`.
    split,   ///< `next` and `other` are reached at once.
    accept,  ///< The text is whole.
    fail,    ///< Nothing follows.
  };
  struct State {
    Kind kind = Kind::fail;
    std::uint8_t first = 0;
    std::uint8_t last = 0;
    std::uint32_t next = 0;
    std::uint32_t other = 0;
  };
  std::vector<State> states;
  std::vector<bool> alive;  ///< [states]: whether a whole text can be reached from there.
  std::uint32_t start = 0;
};

/// Most states of an automaton, 21 bytes each: `[^\n]{0,500}` has 10,000, `\w{0,100}` 280,000.
inline constexpr std::size_t kMostNfaStates = 1'000'000;

/// Returns the automaton of a regular expression that a text must match as a whole.
///
/// The syntax is that which Perl, Python and Rust share: literals, `.` (any character but a line feed), classes,
/// `\d \w \s \p{..}` and their opposites (of Unicode), `* + ? {m} {m,} {m,n}`, alternatives, groups with or without a
/// name. `^` may stand at the beginning and `$` at the end, where they change nothing.
///
/// Throws std::invalid_argument, naming the pattern, what is wrong and where: for an empty pattern, one that no text
/// matches, one that is malformed or larger than kMostNfaStates, one that is not UTF-8, and for what is not regular or
/// has no meaning where texts match as a whole: look-around, back-references, \b, lazy and possessive repetitions,
/// inline flags.
ByteNfa compile_pattern(std::string_view pattern);

}  // namespace decodelab
