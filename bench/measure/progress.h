// How much of a sweep is done, how long the rest will take, and the line that says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace decodelab {

/// One thing that a sweep does and that is timed as a whole: a block of one cell, or a one-off such as its check.
struct ProgressPiece {
  /// A prior from modelled bytes and FLOPs; once pieces are done, only its proportion to theirs matters.
  double expected_seconds = 0;
  std::string kind = "block";  ///< Pieces of one kind are wrong in the same way: block, verification, pilot, launch.
  std::string phase{};         ///< prefill, decode, generate; empty for what belongs to no cell.
  std::int64_t cell = -1;  ///< Index of the cell; below 0 for what belongs to none, and is then only compared by kind.
};

/// Estimates the rest of a sweep whose pieces have very different costs and whose priors are wrong.
///
/// A piece whose kind has run before in the same cell is expected to take the mean of those times. Any other piece is
/// expected to take its prior times a ratio sum(times) / sum(priors) of pieces that are done. These are the ones of
/// other kinds in the same cell (a pilot tells about blocks) if there are any; else those of the same kind and phase,
/// else those of the same phase, else all, else the ratio is 1. Where the ratio comes from other kinds, it is also
/// multiplied by how the times of this kind have compared with it so far, in cells that ran both. A running piece that
/// has outlived its estimate counts as done in the time that it has taken so far.
///
/// calibrate() replaces a prior by what the piece was measured to take: a check times single steps, and a block is so
/// many of them. Such a piece is only corrected by how far others of its phase, calibrated too, were off; the
/// correction starts as if one piece of each calibrated cell of the phase had been exactly right, so that one small
/// cell does not speak for a large one.
///
/// The estimate is right within a quarter once each phase has been seen, in one kind at least: so run the pilots of all
/// cells, or one cell of each phase, first.
class Progress final {
 public:
  /// Pieces in any order. Throws std::invalid_argument for a prior that is negative or not finite.
  explicit Progress(std::vector<ProgressPiece> pieces);

  /// These throw std::invalid_argument for a piece that does not exist or is done or skipped already.
  void piece_started(std::size_t piece);
  /// Records that the piece took `seconds`, also of an earlier session of a resumed run; such a piece needs no
  /// piece_started().
  void piece_done(std::size_t piece, double seconds);
  /// The piece will not run (a cell that is unsupported); it is no evidence of anything.
  void piece_skipped(std::size_t piece);

  /// Sets the seconds that the piece, and all others of its kind and cell, are expected to take from now on. Throws as
  /// above.
  void calibrate(std::size_t piece, double seconds);

  /// Returns the seconds left when the running piece has already taken `elapsed_in_current` (0 where none runs).
  double remaining_seconds(double elapsed_in_current = 0) const;
  /// Returns the share of the whole time that has passed, 0 to 1. It falls where pieces turn out longer than expected,
  /// and is 1 at the end.
  double fraction(double elapsed_in_current = 0) const;

 private:
  /// Pieces that are done: what they took, and the sum of their priors.
  struct Seen {
    double actual = 0;
    double expected = 0;

    void add(double seconds, double expected_seconds);
    std::optional<double> ratio() const;  ///< None before anything was seen.
  };
  /// Pieces of one kind, phase and cell.
  struct Group {
    std::string kind;
    std::string phase;
    std::int64_t cell = -1;  ///< Below 0 for pieces of no cell, which need not be alike.
    Seen seen{};
    std::int64_t count = 0;                 ///< Pieces that are done.
    std::optional<double> calibrated = {};  ///< Seconds of a piece, by calibrate().

    void piece_done(double seconds, double expected_seconds);
  };
  class Model;
  enum class State : std::uint8_t { waiting, running, over };

  State& open_state(std::size_t piece);
  Group& group_of(std::size_t piece) { return groups_[group_of_[piece]]; }

  std::vector<ProgressPiece> pieces_;
  std::vector<State> states_;
  std::vector<std::size_t> group_of_;  ///< Of each piece, an index into groups_.
  std::vector<Group> groups_;
  double spent_seconds_ = 0;
};

/// A duration in its two largest units: `45 s`, `3 min 20 s`, `2 h 5 min`, `1 d 3 h`; `unknown` where it is not finite.
std::string duration_words(double seconds);

/// `[####......]  43 %  ETA 3 min 20 s  launch 2/5 b8 tg @ d512`, cut to `columns` characters, not padded.
std::string progress_line(double fraction, double remaining_seconds, std::string_view label, int columns);

}  // namespace decodelab
