// Tests that the time left is known from the first tenth of a sweep on, on simulated sweeps whose priors are wrong.
#include "bench/measure/progress.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

using Pieces = std::vector<ProgressPiece>;

/// A sweep with the priors that the estimator is told and the times that its pieces really take.
struct Simulation {
  std::vector<ProgressPiece> pieces;
  std::vector<double> seconds;

  void add(ProgressPiece piece, double actual) {
    pieces.push_back(std::move(piece));
    seconds.push_back(actual);
  }
};

struct SimulationShape {
  int launches = 5;
  int blocks = 2;
  bool phases_alternate = false;   ///< Else all cells of prefill come before all of decode.
  double cell_noise = 0.2;         ///< Spread (of the logarithm) of a cell's true cost about what its prior says.
  double verification_bias = 1.5;  ///< Truth over prior of verification, on top of what holds for all kinds.
  std::uint64_t seed = 1;
};

/// 48 cells whose costs span a factor of several hundred. All priors are too small by 3, those of decode by a further
/// 2, and those of verification by a bias of their own; each piece adds 4 % noise.
Simulation simulate(const SimulationShape& shape) {
  struct Cell {
    std::string phase;
    double prior;
    double actual;
  };
  std::mt19937_64 rng(shape.seed);
  std::normal_distribution<double> normal;
  const auto noise = [&](double spread) { return std::exp(spread * normal(rng)); };
  std::vector<Cell> cells;
  for (const double batch : {1, 2, 4, 8, 16, 32}) {
    for (const double length : {64, 256, 1024, 2048}) {
      const double prefill = 0.05 + batch * length * 1e-4;
      const double decode = 0.4 + batch * length * 2e-5;
      cells.push_back({"prefill", prefill, 3 * prefill * noise(shape.cell_noise)});
      cells.push_back({"decode", decode, 6 * decode * noise(shape.cell_noise)});
    }
  }
  if (!shape.phases_alternate) {
    std::stable_partition(cells.begin(), cells.end(), [](const Cell& cell) { return cell.phase == "prefill"; });
  }
  Simulation simulation;
  for (int launch = 0; launch < shape.launches; ++launch) {
    simulation.add({.expected_seconds = 1, .kind = "launch", .phase = "", .cell = -1}, 3 * noise(0.04));
    for (std::size_t i = 0; i < cells.size() && launch == 0; ++i) {
      const auto cell = static_cast<std::int64_t>(i);
      simulation.add({cells[i].prior * 0.3, "verification", cells[i].phase, cell},
                     cells[i].actual * 0.3 * shape.verification_bias * noise(0.04));
      simulation.add({cells[i].prior * 0.1, "pilot", cells[i].phase, cell}, cells[i].actual * 0.1 * noise(0.04));
    }
    for (int block = 0; block < shape.blocks; ++block) {
      for (std::size_t i = 0; i < cells.size(); ++i) {
        simulation.add({cells[i].prior, "block", cells[i].phase, static_cast<std::int64_t>(i)},
                       cells[i].actual * noise(0.04));
      }
    }
  }
  return simulation;
}

/// The largest relative error of the time left, asked at the start or in the middle of each piece from the first tenth
/// of the time on.
///
/// The last hundredth of the time is let off: there a quarter is less than the noise of a single piece.
double worst_error(const Simulation& simulation) {
  Progress progress(simulation.pieces);
  const double total = std::accumulate(simulation.seconds.begin(), simulation.seconds.end(), 0.0);
  double now = 0;
  double worst = 0;
  for (std::size_t i = 0; i < simulation.pieces.size(); ++i) {
    progress.piece_started(i);
    const double elapsed = i % 2 == 0 ? 0.0 : 0.5 * simulation.seconds[i];
    const double left = total - now - elapsed;
    if (now + elapsed >= 0.1 * total && left >= 0.01 * total) {
      worst = std::max(worst, std::abs(progress.remaining_seconds(elapsed) - left) / left);
      if (i % 16 == 0) {
        EXPECT_NEAR(progress.fraction(elapsed), (now + elapsed) / total, 0.08) << i;
      }
    }
    progress.piece_done(i, simulation.seconds[i]);
    now += simulation.seconds[i];
  }
  EXPECT_EQ(progress.remaining_seconds(), 0);
  EXPECT_EQ(progress.fraction(), 1);
  return worst;
}

TEST(Progress, IsRightWithinAQuarterFromTheFirstTenthOn) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    for (const bool alternate : {false, true}) {
      EXPECT_LT(worst_error(simulate({.phases_alternate = alternate, .seed = seed})), 0.25) << seed << " " << alternate;
    }
  }
}

TEST(Progress, IsRightWithinAQuarterWhereEachCellRunsOnlyTwice) {
  // The first tenth ends among the one-offs here, so that a bias of theirs alone could not be known.
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    for (const bool alternate : {false, true}) {
      const Simulation simulation =
          simulate({.launches = 1, .phases_alternate = alternate, .verification_bias = 1, .seed = seed});
      EXPECT_LT(worst_error(simulation), 0.25) << seed << " " << alternate;
    }
  }
}

TEST(Progress, IsRightWithinAQuarterWherePriorsOfCellsAreFarOff) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    EXPECT_LT(worst_error(simulate({.cell_noise = 0.5, .seed = seed})), 0.25) << seed;
  }
}

TEST(Progress, IsNearlyExactOnceEveryCellHasRun) {
  const Simulation simulation = simulate({.cell_noise = 0.8});
  Progress progress(simulation.pieces);
  const std::size_t first_round = 1 + 3 * 48;
  for (std::size_t i = 0; i < first_round; ++i) {
    progress.piece_done(i, simulation.seconds[i]);
  }
  const double left = std::accumulate(simulation.seconds.begin() + first_round, simulation.seconds.end(), 0.0);
  EXPECT_NEAR(progress.remaining_seconds() / left, 1.0, 0.05);
}

TEST(Progress, StartsFromItsPriors) {
  const Progress progress(Pieces{{.expected_seconds = 2}, {.expected_seconds = 3}});
  EXPECT_DOUBLE_EQ(progress.remaining_seconds(), 5);
  EXPECT_DOUBLE_EQ(progress.fraction(), 0);
}

TEST(Progress, CombinesWhatItKnowsOfPhasesAndOfKinds) {
  Progress progress(Pieces{
      {1, "block", "prefill", 0}, {1, "block", "decode", 1}, {1, "pilot", "decode", 1}, {1, "pilot", "prefill", 2}});
  progress.piece_done(0, 2);
  progress.piece_done(1, 10);
  progress.piece_done(2, 30);
  EXPECT_NEAR(progress.remaining_seconds(), 6, 0.1) << "a pilot takes three times its block";
}

TEST(Progress, ScalesAPhaseItHasNotSeenLikeTheRest) {
  Progress progress(Pieces{{1, "block", "prefill", 0}, {1, "block", "decode", 1}, {5, "block", "generate", 2}});
  progress.piece_done(0, 2);
  progress.piece_done(1, 4);
  EXPECT_NEAR(progress.remaining_seconds(), 15, 1e-9);
}

TEST(Progress, KnowsAnOddCellByItsPilot) {
  Pieces pieces;
  for (const char* kind : {"pilot", "block"}) {
    for (std::int64_t cell = 0; cell < 4; ++cell) {
      pieces.push_back({.expected_seconds = 1, .kind = kind, .phase = "decode", .cell = cell});
    }
  }
  Progress progress(pieces);
  for (std::size_t i = 0; i < 7; ++i) {
    progress.piece_done(i, i == 3 ? 0.4 : i < 4 ? 0.1 : 1.0);
  }
  EXPECT_NEAR(progress.remaining_seconds(), 4, 0.1);
}

TEST(Progress, ScalesABlockLikeThePilotOfItsCellUntilOtherBlocksShowHowTheyCompare) {
  Progress progress(Pieces{
      {1, "pilot", "decode", 0}, {1, "pilot", "decode", 1}, {10, "block", "decode", 0}, {10, "block", "decode", 1}});
  progress.piece_done(0, 2);
  progress.piece_done(1, 5);
  EXPECT_DOUBLE_EQ(progress.remaining_seconds(), 20 + 50);
  progress.piece_done(2, 30);
  EXPECT_DOUBLE_EQ(progress.remaining_seconds(), 75) << "the other block took one and a half times as much";
}

TEST(Progress, TakesACalibratedPieceAtItsWord) {
  Progress progress(Pieces{{1, "check", "prefill", 0},
                           {1, "check", "prefill", 1},
                           {1, "block", "prefill", 0},
                           {1, "block", "prefill", 1},
                           {1, "block", "prefill", 1}});
  progress.piece_done(0, 50);  // Checks say nothing about blocks any more.
  progress.piece_done(1, 50);
  progress.calibrate(2, 1);
  progress.calibrate(3, 100);
  EXPECT_DOUBLE_EQ(progress.remaining_seconds(), 201);
  progress.piece_done(2, 3);  // A small cell that took three times as long says little about a large one.
  EXPECT_NEAR(progress.remaining_seconds(), 204, 0.1);
  progress.piece_done(3, 120);
  EXPECT_DOUBLE_EQ(progress.remaining_seconds(), 120);
  EXPECT_THROW(progress.calibrate(3, 1), std::invalid_argument);
  EXPECT_THROW(progress.calibrate(4, -1), std::invalid_argument);
}

TEST(Progress, UsesTheMeanOfTheSameCell) {
  Progress progress(Pieces{
      {1, "block", "decode", 0}, {1, "block", "decode", 0}, {1, "block", "decode", 1}, {1, "block", "decode", 0}});
  progress.piece_done(0, 3);
  progress.piece_done(1, 5);
  progress.piece_done(2, 100);
  EXPECT_DOUBLE_EQ(progress.remaining_seconds(), 4);
}

TEST(Progress, SubtractsWhatTheRunningPieceHasTaken) {
  Progress progress(Pieces{{.expected_seconds = 10}, {.expected_seconds = 10}});
  progress.piece_started(0);
  EXPECT_DOUBLE_EQ(progress.remaining_seconds(4), 16);
  EXPECT_DOUBLE_EQ(progress.fraction(4), 0.2);
}

TEST(Progress, LearnsFromAPieceThatOutlivesItsEstimate) {
  Progress progress(Pieces{{.expected_seconds = 10}, {.expected_seconds = 10}});
  progress.piece_started(0);
  EXPECT_DOUBLE_EQ(progress.remaining_seconds(30), 30) << "three times the prior so far, and so will be the other";
}

TEST(Progress, LeavesOutSkippedPieces) {
  Progress progress(Pieces{{.expected_seconds = 10}, {.expected_seconds = 7}});
  progress.piece_started(0);
  progress.piece_skipped(0);
  EXPECT_DOUBLE_EQ(progress.remaining_seconds(), 7);
  progress.piece_skipped(1);
  EXPECT_DOUBLE_EQ(progress.fraction(), 1);
}

TEST(Progress, HasNothingLeftWithoutPieces) {
  EXPECT_DOUBLE_EQ(Progress(Pieces{}).remaining_seconds(), 0);
  EXPECT_DOUBLE_EQ(Progress(Pieces{}).fraction(), 1);
}

TEST(Progress, SurvivesPriorsOfZero) {
  Progress progress(Pieces{{.expected_seconds = 0}, {.expected_seconds = 5}});
  progress.piece_done(0, 1);
  EXPECT_DOUBLE_EQ(progress.remaining_seconds(), 5);
}

TEST(Progress, RefusesWhatItCannotCount) {
  EXPECT_THROW(Progress(Pieces{{.expected_seconds = -1}}), std::invalid_argument);
  EXPECT_THROW(Progress(Pieces{{.expected_seconds = std::numeric_limits<double>::infinity()}}), std::invalid_argument);
  Progress progress(Pieces{{.expected_seconds = 1}});
  EXPECT_THROW(progress.piece_done(1, 1), std::invalid_argument);
  progress.piece_done(0, 1);
  EXPECT_THROW(progress.piece_done(0, 1), std::invalid_argument);
  EXPECT_THROW(progress.piece_started(0), std::invalid_argument);
}

TEST(DurationWords, UseTheTwoLargestUnits) {
  EXPECT_EQ(duration_words(0.4), "0 s");
  EXPECT_EQ(duration_words(45), "45 s");
  EXPECT_EQ(duration_words(59.7), "1 min 0 s");
  EXPECT_EQ(duration_words(200), "3 min 20 s");
  EXPECT_EQ(duration_words(3599.6), "1 h 0 min");
  EXPECT_EQ(duration_words(7500), "2 h 5 min");
  EXPECT_EQ(duration_words(86399), "1 d 0 h");
  EXPECT_EQ(duration_words(97200), "1 d 3 h");
  EXPECT_EQ(duration_words(-1), "0 s");
  EXPECT_EQ(duration_words(std::numeric_limits<double>::infinity()), "unknown");
  EXPECT_EQ(duration_words(1e300), "unknown");
}

TEST(ProgressLine, ShowsTheBarTheShareTheTimeLeftAndTheLabel) {
  EXPECT_EQ(progress_line(0.43, 200, "launch 2/5 b8 tg @ d512", 120),
            "[####......]  43 %  ETA 3 min 20 s  launch 2/5 b8 tg @ d512");
  EXPECT_EQ(progress_line(0, 5, "x", 120), "[..........]   0 %  ETA 5 s  x");
  EXPECT_EQ(progress_line(1, 0, "x", 120), "[##########] 100 %  ETA 0 s  x");
  EXPECT_EQ(progress_line(0.29, 0, "x", 120).substr(12, 6), "  29 %");
}

TEST(ProgressLine, SaysAHundredPercentAtTheEndOnly) {
  EXPECT_EQ(progress_line(0.9999, 1, "x", 18), "[#########.]  99 %");
}

TEST(ProgressLine, IsCutToTheColumns) {
  EXPECT_EQ(progress_line(0.43, 200, "launch 2/5", 12), "[####......]");
  EXPECT_EQ(progress_line(0.43, 200, "launch 2/5", 0), "");
  EXPECT_EQ(progress_line(0.43, 5, "µµµµ", 30), "[####......]  43 %  ETA 5 s  µ") << "not inside of a character";
}

TEST(ProgressLine, KeepsItsHeadWithNonsenseNumbers) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(progress_line(nan, nan, "x", 120), "[..........]   0 %  ETA unknown  x");
  EXPECT_EQ(progress_line(7, -3, "x", 120), "[##########] 100 %  ETA 0 s  x");
}

}  // namespace
}  // namespace decodelab
