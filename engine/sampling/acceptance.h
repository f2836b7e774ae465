// Which guesses of a round of speculation stand: the interface of a slot, and its reference.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace decodelab {

/// What Round::choose() returns for a row whose rules leave no token.
inline constexpr std::int64_t kNoToken = -1;

/// A pass of the model over guesses of B rows. Position p of a row is what it says behind the first p of its guesses.
class Round {
 public:
  virtual ~Round() = default;

  /// Returns the guesses of each row, maybe none.
  virtual const std::vector<std::vector<std::int64_t>>& guesses() const = 0;
  /// Chooses what each of `rows`, in rising order, says at `position`, as a decode step would: with its masks,
  /// penalties and random numbers. Called for each row from position 0 on, and only while it says what was guessed.
  virtual std::vector<std::int64_t> choose(std::int64_t position, const std::vector<std::int64_t>& rows) = 0;
  /// Returns whether the highest logit alone decides in all rows, so that positions may be chosen in any order.
  virtual bool is_plain() const = 0;
  /// Chooses all positions of all rows at once. Throws std::logic_error unless is_plain().
  virtual std::vector<std::vector<std::int64_t>> choose_all() = 0;
};

/// Says which guesses stand. Whatever the implementation, a row says the tokens that plain decoding would have said.
class Acceptance {
 public:
  virtual ~Acceptance() = default;

  /// Returns what each row says: the guesses that stand, and one token more; of a row whose rules leave none behind
  /// them, the guesses alone.
  virtual std::vector<std::vector<std::int64_t>> accept(Round& round) const = 0;
};

/// The reference: one position after the other, in the rows that said what was guessed so far.
std::unique_ptr<Acceptance> make_match_acceptance();

}  // namespace decodelab
