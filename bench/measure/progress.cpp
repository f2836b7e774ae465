// Learns from pieces that are done what the others will take.
#include "bench/measure/progress.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace decodelab {
namespace {

constexpr std::size_t kBarCharacters = 10;
constexpr double kLongestSeconds = 100.0 * 365 * 86400;  ///< A century: beyond it a number says no more than "unknown".

bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }  // UTF-8, RFC 3629.

}  // namespace

void Progress::Seen::add(double seconds, double expected_seconds) {
  actual += seconds;
  expected += expected_seconds;
}

std::optional<double> Progress::Seen::ratio() const {
  return expected > 0 ? std::optional(actual / expected) : std::nullopt;
}

void Progress::Group::piece_done(double seconds, double expected_seconds) {
  seen.add(seconds, expected_seconds);
  ++count;
}

/// The ratios between times and priors in all that has been seen.
class Progress::Model final {
 public:
  explicit Model(const std::vector<Group>& groups) {
    for (const Group& group : groups) {
      if (group.calibrated) {
        calibrated_[group.phase].add(group.seen.actual + *group.calibrated,
                                     static_cast<double>(group.count + 1) * *group.calibrated);
      } else if (group.count > 0) {
        for (Seen* const sum :
             {&all_, &phases_[group.phase], &kinds_[{group.kind, group.phase}], &cells_[group.cell]}) {
          sum->add(group.seen.actual, group.seen.expected);
        }
      }
    }
    for (const Group& group : groups) {
      const std::optional<double> others = others_in_cell(group);
      if (others && !group.calibrated) {
        beside_others_[group.kind].add(group.seen.actual, group.seen.expected * *others);
      }
    }
  }

  double estimate(const Group& group, double expected_seconds) const {
    if (group.cell >= 0 && group.count > 0) {
      return group.seen.actual / static_cast<double>(group.count);
    }
    if (group.calibrated) {
      return *group.calibrated * ratio(calibrated_, group.phase).value_or(1);
    }
    return expected_seconds * factor(group);
  }

 private:
  template <typename Key>
  static std::optional<double> ratio(const std::map<Key, Seen>& sums, const Key& key) {
    const auto found = sums.find(key);
    return found == sums.end() ? std::nullopt : found->second.ratio();
  }

  /// The ratio of the other kinds in the cell of `group`.
  std::optional<double> others_in_cell(const Group& group) const {
    const auto cell = cells_.find(group.cell);
    if (group.cell < 0 || cell == cells_.end()) {
      return std::nullopt;
    }
    const Seen own = group.calibrated ? Seen() : group.seen;  // The sums are without calibrated groups.
    return Seen{cell->second.actual - own.actual, cell->second.expected - own.expected}.ratio();
  }

  double factor(const Group& group) const {
    const double beside_others = ratio(beside_others_, group.kind).value_or(1);
    if (const std::optional<double> others = others_in_cell(group)) {
      return *others * beside_others;
    }
    if (const std::optional<double> same = ratio(kinds_, {group.kind, group.phase})) {
      return *same;
    }
    if (const std::optional<double> phase = ratio(phases_, group.phase)) {
      return *phase * beside_others;
    }
    return all_.ratio().value_or(1);
  }

  Seen all_;
  std::map<std::string, Seen> phases_;
  std::map<std::pair<std::string, std::string>, Seen> kinds_;  ///< By kind and phase.
  std::map<std::int64_t, Seen> cells_;
  /// By kind: its times, and its priors times the ratio of the other kinds in the same cell.
  std::map<std::string, Seen> beside_others_;
  /// By phase: calibrated groups, each with one more piece that took what was expected.
  std::map<std::string, Seen> calibrated_;
};

Progress::Progress(std::vector<ProgressPiece> pieces)
    : pieces_(std::move(pieces)), states_(pieces_.size(), State::waiting) {
  std::map<std::tuple<std::string, std::string, std::int64_t>, std::size_t> groups;
  for (const ProgressPiece& piece : pieces_) {
    if (!std::isfinite(piece.expected_seconds) || piece.expected_seconds < 0) {
      throw std::invalid_argument(
          fmt::format("progress: a piece of kind '{}' is expected to take {} s; expected a finite number, 0 or more.",
                      piece.kind, piece.expected_seconds));
    }
    const std::int64_t cell = std::max<std::int64_t>(piece.cell, -1);
    const auto [found, is_new] = groups.try_emplace({piece.kind, piece.phase, cell}, groups_.size());
    if (is_new) {
      groups_.push_back({.kind = piece.kind, .phase = piece.phase, .cell = cell});
    }
    group_of_.push_back(found->second);
  }
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
  group_of(piece).piece_done(seconds, pieces_[piece].expected_seconds);
  spent_seconds_ += seconds;
}

void Progress::piece_skipped(std::size_t piece) { open_state(piece) = State::over; }

void Progress::calibrate(std::size_t piece, double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) {
    throw std::invalid_argument(
        fmt::format("progress: piece {} is calibrated to {} s; expected a finite number, 0 or more.", piece, seconds));
  }
  open_state(piece);
  group_of(piece).calibrated = seconds;
}

double Progress::remaining_seconds(double elapsed_in_current) const {
  const Model before(groups_);
  std::vector<Group> groups = groups_;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const double expected = pieces_[i].expected_seconds;
    if (states_[i] == State::running && elapsed_in_current > before.estimate(groups_[group_of_[i]], expected)) {
      groups[group_of_[i]].piece_done(elapsed_in_current, expected);
    }
  }
  const Model model(groups);
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
  // Rounded down, so that 100 % is shown at the end only; 1e-9 is added because 0.29 * 100 = 28.999...
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
