// Learns from pieces that are done what the others will take.
#include "bench/measure/progress.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace decodelab {
namespace {

constexpr int kFitRounds = 12;  ///< Each round of proportional fitting halves what is left of the error, or better.
constexpr std::size_t kBarCharacters = 10;
constexpr double kLongestSeconds = 100.0 * 365 * 86400;  ///< A century: beyond it a number says no more than "unknown".

bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }  // UTF-8, RFC 3629.

}  // namespace

/// The factors between priors and times, fitted to what has been seen.
class Progress::Model final {
 public:
  /// Keeps a reference to `groups`, which must outlive it.
  explicit Model(const std::vector<Group>& groups) : groups_(groups) { fit_all(); }

  /// Fits anew to what `groups` hold now.
  void fit_all() {
    all_.assign(1, 1.0);
    for (std::vector<double>* factors : {&phase_, &kind_, &cell_}) {
      factors->assign(groups_.size(), 1.0);  // No level has more members than there are groups.
    }
    fit(all_, [](const Group&) { return std::size_t{0}; });
    for (int round = 0; round < kFitRounds; ++round) {
      fit(phase_, [](const Group& group) { return group.phase; });
      fit(kind_, [](const Group& group) { return group.kind; });
    }
    fit_calibrated();
    // Cells after phases and kinds: a cell's factor is how far it is off its like, and 1 where it has not been seen.
    // Then in turns, so that a kind of which few cells have been seen is not judged by how odd these are.
    for (int round = 0; round < kFitRounds; ++round) {
      fit(cell_, [](const Group& group) { return group.cell; });
      fit(kind_, [](const Group& group) { return group.kind; });
    }
  }

  double estimate(const Group& group, double expected_seconds) const {
    if (group.repeats && group.count > 0) {
      return group.actual / static_cast<double>(group.count);
    }
    return group.calibrated ? *group.calibrated * calibrated_[group.phase] : expected_seconds * factor(group);
  }

 private:
  double factor(const Group& group) const {
    return all_[0] * phase_[group.phase] * kind_[group.kind] * cell_[group.cell];
  }

  /// How far calibrated groups of each phase were off; each cell of the phase counts once as exactly right beside it.
  void fit_calibrated() {
    std::vector<double> actual(groups_.size());
    std::vector<double> expected(groups_.size());
    for (const Group& group : groups_) {
      if (group.calibrated) {
        actual[group.phase] += group.actual + *group.calibrated;
        expected[group.phase] += static_cast<double>(group.count + 1) * *group.calibrated;
      }
    }
    calibrated_.assign(groups_.size(), 1.0);
    for (std::size_t phase = 0; phase < groups_.size(); ++phase) {
      if (expected[phase] > 0) {
        calibrated_[phase] = actual[phase] / expected[phase];
      }
    }
  }

  /// Moves the factors of one level so that each of its members' sum of estimates is its sum of times.
  template <typename MemberOf>
  void fit(std::vector<double>& factors, MemberOf member_of) {
    std::vector<double> actual(factors.size());
    std::vector<double> estimated(factors.size());
    for (const Group& group : groups_) {
      if (group.count > 0 && !group.calibrated) {
        actual[member_of(group)] += group.actual;
        estimated[member_of(group)] += group.expected * factor(group);
      }
    }
    for (std::size_t i = 0; i < factors.size(); ++i) {
      factors[i] *= estimated[i] > 0 ? actual[i] / estimated[i] : 1.0;
    }
  }

  const std::vector<Group>& groups_;
  std::vector<double> all_;  ///< One factor, as a level of its own.
  std::vector<double> phase_;
  std::vector<double> kind_;
  std::vector<double> cell_;
  std::vector<double> calibrated_;  ///< By phase.
};

Progress::Progress(std::vector<ProgressPiece> pieces)
    : pieces_(std::move(pieces)), states_(pieces_.size(), State::waiting) {
  std::map<std::string, std::size_t> kinds;
  std::map<std::string, std::size_t> phases;
  std::map<std::pair<std::string, std::int64_t>, std::size_t> cells;  // Pieces of no cell are alike by phase.
  std::map<std::array<std::size_t, 3>, std::size_t> groups;
  for (const ProgressPiece& piece : pieces_) {
    if (!std::isfinite(piece.expected_seconds) || piece.expected_seconds < 0) {
      throw std::invalid_argument(
          fmt::format("progress: a piece of kind '{}' is expected to take {} s; expected a finite number, 0 or more.",
                      piece.kind, piece.expected_seconds));
    }
    Group group;
    group.kind = kinds.try_emplace(piece.kind, kinds.size()).first->second;
    group.phase = phases.try_emplace(piece.phase, phases.size()).first->second;
    const std::pair cell(piece.cell < 0 ? piece.phase : std::string(), std::max<std::int64_t>(piece.cell, -1));
    group.cell = cells.try_emplace(cell, cells.size()).first->second;
    group.repeats = piece.cell >= 0;
    const auto [found, is_new] = groups.try_emplace({group.kind, group.phase, group.cell}, groups_.size());
    if (is_new) {
      groups_.push_back(group);
    }
    group_of_.push_back(found->second);
  }
}

void Progress::add_evidence(Group& group, double expected_seconds, double seconds) {
  group.actual += seconds;
  group.expected += expected_seconds;
  ++group.count;
}

Progress::State& Progress::open_state(std::size_t piece) {
  if (piece >= states_.size() || states_[piece] == State::over) {
    throw std::invalid_argument(fmt::format("progress: piece {} of {} {}; expected one that is still to do.", piece,
                                            states_.size(), piece >= states_.size() ? "does not exist" : "is over"));
  }
  return states_[piece];
}

void Progress::piece_started(std::size_t piece) { open_state(piece) = State::running; }

void Progress::piece_done(std::size_t piece, double seconds) {
  open_state(piece) = State::over;
  add_evidence(groups_[group_of_[piece]], pieces_[piece].expected_seconds, seconds);
  spent_seconds_ += seconds;
}

void Progress::piece_skipped(std::size_t piece) { open_state(piece) = State::over; }

void Progress::calibrate(std::size_t piece, double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) {
    throw std::invalid_argument(
        fmt::format("progress: piece {} is calibrated to {} s; expected a finite number, 0 or more.", piece, seconds));
  }
  open_state(piece);
  groups_[group_of_[piece]].calibrated = seconds;
}

double Progress::remaining_seconds(double elapsed_in_current) const {
  std::vector<Group> groups = groups_;
  Model model(groups);
  bool outlived = false;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const double expected = pieces_[i].expected_seconds;
    if (states_[i] == State::running && elapsed_in_current > model.estimate(groups_[group_of_[i]], expected)) {
      add_evidence(groups[group_of_[i]], expected, elapsed_in_current);
      outlived = true;
    }
  }
  if (outlived) {
    model.fit_all();
  }
  double remaining = 0;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (states_[i] != State::over) {
      const double over = states_[i] == State::running ? elapsed_in_current : 0.0;
      remaining += std::max(0.0, model.estimate(groups[group_of_[i]], pieces_[i].expected_seconds) - over);
    }
  }
  return remaining;
}

double Progress::fraction(double elapsed_in_current) const {
  if (std::all_of(states_.begin(), states_.end(), [](State state) { return state == State::over; })) {
    return 1;
  }
  const double spent = spent_seconds_ + elapsed_in_current;
  const double remaining = remaining_seconds(elapsed_in_current);
  return spent > 0 ? spent / (spent + remaining) : 0.0;
}

std::string duration_words(double seconds) {
  if (!std::isfinite(seconds) || seconds > kLongestSeconds) {
    return "unknown";
  }
  const auto whole = static_cast<std::int64_t>(std::llround(std::max(seconds, 0.0)));
  if (whole < 60) {
    return fmt::format("{} s", whole);
  }
  if (whole < 3600) {
    return fmt::format("{} min {} s", whole / 60, whole % 60);
  }
  const std::int64_t minutes = (whole + 30) / 60;
  if (minutes < 24 * 60) {
    return fmt::format("{} h {} min", minutes / 60, minutes % 60);
  }
  const std::int64_t hours = (minutes + 30) / 60;
  return fmt::format("{} d {} h", hours / 24, hours % 24);
}

std::string progress_line(double fraction, double remaining_seconds, std::string_view label, int columns) {
  const double done = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0.0;
  // Rounded down, so that 100 % is said at the end only; the hair undoes 0.29 * 100 = 28.999...
  const int percent = static_cast<int>(done * 100 + 1e-9);
  const std::size_t filled = static_cast<std::size_t>(percent) * kBarCharacters / 100;
  const std::string bar = std::string(filled, '#') + std::string(kBarCharacters - filled, '.');
  std::string line = fmt::format("[{}] {:3d} %  ETA {}  {}", bar, percent, duration_words(remaining_seconds), label);
  int characters = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (starts_character(line[i]) && ++characters > columns) {
      line.resize(i);
    }
  }
  return line;
}

}  // namespace decodelab
