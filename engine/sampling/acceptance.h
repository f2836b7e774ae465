// Which guesses of a round of speculation stand: the interface of a slot, and its reference.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace at {
class Tensor;
}

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
  /// Returns whether the row draws its tokens at random.
  virtual bool draws(std::int64_t row) const = 0;
  /// Does what choose() does for rows that draw, but lets `picker` name their tokens, from the probabilities that they
  /// would be drawn with: [N, V] fp64 on the host, a line for each of `rows`.
  using Picker = std::function<std::vector<std::int64_t>(const at::Tensor& probabilities)>;
  virtual std::vector<std::int64_t> pick(std::int64_t position, const std::vector<std::int64_t>& rows,
                                         const Picker& picker) = 0;
  /// Returns what the guesses of the row were drawn from; null: nobody drew them. As Proposer::drawn_from().
  virtual const at::Tensor* drawn_from(std::int64_t row) const = 0;
  /// What a random number is for: numbers for different uses are independent.
  enum class Use : std::uint8_t { accept, replace, go_on };
  /// Returns a random number in [0, 1) of the row's seed, for a position of the sequence: the same however the rounds
  /// fall, and independent of all that choose() draws.
  virtual double uniform(std::int64_t row, std::int64_t position, Use use) const = 0;
  /// Returns whether the highest logit alone decides in all rows, so that positions may be chosen in any order.
  virtual bool is_plain() const = 0;
  /// Chooses all positions of all rows at once. Throws std::logic_error unless is_plain().
  virtual std::vector<std::vector<std::int64_t>> choose_all() = 0;
};

/// Says which guesses stand. Whatever the implementation, a row says what plain decoding would have said: the same
/// tokens, or where it draws them in another way, tokens of the same distribution.
class Acceptance {
 public:
  virtual ~Acceptance() = default;

  /// Returns whether guesses of rows that draw should be drawn themselves, and come with what they were drawn from.
  virtual bool wants_drawn_guesses() const { return false; }
  /// Returns what each row says: the guesses that stand, and one token more; of a row whose rules leave none behind
  /// them, the guesses alone.
  virtual std::vector<std::vector<std::int64_t>> accept(Round& round) const = 0;
};

/// Adds to `said` the tokens that `rows` say at a position, and returns those that said what was guessed there and go
/// on.
std::vector<std::int64_t> add_said(const Round& round, std::int64_t position, const std::vector<std::int64_t>& rows,
                                   const std::vector<std::int64_t>& tokens,
                                   std::vector<std::vector<std::int64_t>>& said);

/// The reference: one position after the other, in the rows that said what was guessed so far.
std::unique_ptr<Acceptance> make_match_acceptance();

}  // namespace decodelab
