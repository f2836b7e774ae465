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
  /// A prior from modelled bytes and FLOPs; for long only its proportion to the others of its kind and phase matters.
  double expected_seconds = 0;
  std::string kind = "block";  ///< Pieces of one kind are wrong in the same way: block, verification, pilot, launch.
  std::string phase{};         ///< prefill, decode, generate; empty for what belongs to no cell.
  std::int64_t cell = -1;  ///< Index of the cell; below 0 for what belongs to none, and is then only compared by kind.
};

/// Estimates the rest of a sweep whose pieces have very different costs and whose priors are wrong.
///
/// A piece whose kind has run before in the same cell is expected to take the mean of those times. Any other is
/// expected to take its prior times four factors fitted to all that has been seen: of everything, of its phase, of its
/// kind, and of its cell (in other kinds: a pilot tells about blocks). Each factor is sum(actual) / sum(what the other
/// factors predict), found by iterative proportional fitting (Deming and Stephan 1940, doi:10.1214/aoms/1177731829),
/// and 1 where nothing was seen. A running piece that has outlived its estimate counts as evidence with the time it has
/// taken so far.
///
/// calibrate() replaces a prior by what the piece was measured to take: a check times single steps, and a block is so
/// many of them. Such a piece is only corrected by how far others of its phase, calibrated too, were off; the
/// correction starts as if pieces worth all calibrated cells of the phase once had been exactly right, so that one small cell does not
/// speak for a large one.
///
/// The estimate is right within a quarter once each phase has been seen, in one kind at least: so run the pilots of all
/// cells, or one cell of each phase, first. An estimate costs some 0.1 ms at a thousand pieces.
class Progress final {
 public:
  /// Pieces in any order. Throws std::invalid_argument for a prior that is negative or not finite.
  explicit Progress(std::vector<ProgressPiece> pieces);

  /// These throw std::invalid_argument for a piece that does not exist or is done or skipped already.
  void piece_started(std::size_t piece);
  /// `seconds` may also be of an earlier session of the run that is resumed; such pieces need no piece_started().
  void piece_done(std::size_t piece, double seconds);
  /// The piece will not run (a cell that is unsupported); it is no evidence of anything.
  void piece_skipped(std::size_t piece);

  /// `seconds` is what the piece, and all others of its kind and cell, are now expected to take. Throws as above.
  void calibrate(std::size_t piece, double seconds);

  /// Seconds left, `elapsed_in_current` of the running piece being over (0 where none runs).
  double remaining_seconds(double elapsed_in_current = 0) const;
  /// Share of the time, 0 to 1, that is over; it falls where pieces turn out longer than expected. 1 at the end.
  double fraction(double elapsed_in_current = 0) const;

 private:
  /// Pieces of one kind, phase and cell (numbered as first mentioned), and what they took so far.
  struct Group {
    std::size_t kind = 0;
    std::size_t phase = 0;
    std::size_t cell = 0;
    double actual = 0;
    double expected = 0;  ///< Sum of the priors of the pieces that are done.
    std::int64_t count = 0;
    bool repeats = false;              ///< It belongs to a cell, so that all its pieces do the same work.
    std::optional<double> calibrated;  ///< Seconds of a piece, by calibrate().
  };
  class Model;
  enum class State : std::uint8_t { waiting, running, over };

  static void add_evidence(Group& group, double expected_seconds, double seconds);
  State& open_state(std::size_t piece);

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
