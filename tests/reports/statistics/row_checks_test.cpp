// Effects of order, course and location are found where they were put, and nowhere else.
#include "reports/statistics/row_checks.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

constexpr std::int64_t kArms = 3;
constexpr std::int64_t kCheckedSteps = 16;

/// Nanoseconds of a step from the visit's arm, the arm before it (0: none), its place, and the step's index.
using Model = std::function<double(std::int64_t arm, std::int64_t previous, std::int64_t place, std::int64_t step)>;

// Four launches of six blocks, one for each order of three arms.
std::vector<BlockRecord> blocks_of(const Model& model) {
  std::vector<BlockRecord> blocks;
  for (std::int64_t launch = 0; launch < 4; ++launch) {
    std::vector<std::int64_t> order{1, 2, 3};
    for (std::int64_t index = 0; index < 6; ++index, std::ranges::next_permutation(order)) {
      BlockRecord block{.launch = launch, .block = index};
      std::int64_t previous = 0;
      for (std::int64_t place = 0; place < 2 * kArms; ++place) {
        const auto mirrored = static_cast<std::size_t>(std::min(place, 2 * kArms - 1 - place));
        const std::int64_t arm = order[mirrored];
        VisitRecord visit{.arm_id = arm, .position = place, .previous_arm_id = previous};
        // No two launches are alike, or their means would have no spread.
        const double launch_factor = 1 + 1e-5 * static_cast<double>(launch);
        for (std::int64_t step = 0; step < kCheckedSteps; ++step) {
          visit.samples_ns.push_back(std::llround(launch_factor * model(arm, previous, place, step)));
        }
        block.visits.push_back(std::move(visit));
        previous = arm;
      }
      blocks.push_back(std::move(block));
    }
  }
  return blocks;
}

std::vector<const BlockRecord*> pointers(const std::vector<BlockRecord>& blocks) {
  std::vector<const BlockRecord*> result;
  for (const BlockRecord& block : blocks) {
    result.push_back(&block);
  }
  return result;
}

constexpr double kStep = 1e7;

TEST(RowChecks, FindCostsThatComeTooSeldomForThePairs) {
  // One step of 32, over two visits of 16, that takes 9 times as long.
  const auto blocks = blocks_of(
      [](auto arm, auto, auto place, auto step) { return arm == 2 && place < kArms && step == 5 ? 9 * kStep : kStep; });
  const auto cell = pointers(blocks);
  // Of the four pairs of its class, the pair of that step keeps a fifth of its weight: (7 + (0.2 * 9 + 2.2) / 2.4) / 8
  // = 13 / 12.
  EXPECT_NEAR(rare_costs(cell, 2, 1)->mean, std::log(1.25 * 12 / 13), 1e-6);
  EXPECT_NEAR(rare_costs(cell, 3, 1)->mean, 0, 1e-6);
  const std::vector<std::string> flags = check_row(cell, 0, 2, 1, 0.03, std::nullopt).flags;
  EXPECT_NE(std::ranges::find(flags, kRareCostsFlag), flags.end());
}

TEST(RowChecks, FindNothingInBlocksThatOnlyDifferByArm) {
  const auto blocks = blocks_of([](auto arm, auto, auto, auto) { return kStep * static_cast<double>(arm); });
  const auto cell = pointers(blocks);
  EXPECT_NEAR(slot_effect(cell)->mean, 0, 1e-6);
  EXPECT_NEAR(carry_over(cell, 2, 0)->mean, 0, 1e-6);
  EXPECT_NEAR(slope_in_visits(cell, 2, 1)->mean, 0, 1e-6);
  EXPECT_NEAR(median_contrast(cell, 2, 1)->mean, std::log(2), 1e-6);
  EXPECT_EQ(check_row(cell, 0, 2, 1, 0.03, Verdict::slower).flags, std::vector<std::string>());
}

TEST(RowChecks, TellADriftFromWhatFollowingAnotherArmCosts) {
  const auto drifting =
      blocks_of([](auto, auto, auto place, auto) { return kStep * std::exp(0.004 * static_cast<double>(place)); });
  EXPECT_NEAR(slot_effect(pointers(drifting))->mean, 0.004, 1e-6);
  EXPECT_NEAR(carry_over(pointers(drifting), 2, 0)->mean, 0, 1e-6) << "a drift is no carry-over";

  const auto carried = blocks_of(
      [](auto arm, auto previous, auto, auto) { return kStep * (arm == 2 && previous != 2 ? std::exp(0.02) : 1); });
  const auto cell = pointers(carried);
  EXPECT_NEAR(carry_over(cell, 2, 0)->mean, 0.02, 1e-6);
  EXPECT_NEAR(carry_over(cell, 3, 0)->mean, 0, 1e-6);
  EXPECT_EQ(check_row(cell, 0, 2, 1, 0.03, std::nullopt).flags, std::vector<std::string>{kCarryOverFlag});
  EXPECT_EQ(check_row(cell, 0, 2, 1, 0.09, std::nullopt).flags, std::vector<std::string>())
      << "less than a third of the margin";
}

TEST(RowChecks, TellWhatFollowingAnotherArmCostsBetweenSlices) {
  constexpr std::int64_t kSlice = 3;
  // In each slice after another arm's, the first step of arm 2 is 30 % longer: a tenth of a slice.
  const auto with_slices = [&](double carried) {
    auto blocks = blocks_of([](auto, auto, auto, auto) { return kStep; });
    for (BlockRecord& block : blocks) {
      for (VisitRecord& visit : block.visits) {
        visit.previous_arm_id = 0;
        for (std::int64_t slice = 0; slice * kSlice < kCheckedSteps; ++slice) {
          const bool follows_itself = slice > 0 && visit.position % kArms == (slice % 2 == 0 ? 0 : kArms - 1);
          std::int64_t& first = visit.samples_ns[static_cast<std::size_t>(slice * kSlice)];
          if (visit.arm_id == 2 && !follows_itself) {
            first = std::llround(static_cast<double>(first) * carried);
          }
        }
      }
    }
    return blocks;
  };
  const auto carried = with_slices(1.3);
  const auto cell = pointers(carried);
  EXPECT_NEAR(carry_over(cell, 2, kSlice)->mean, std::log(1.3) / 3, 1e-4);
  EXPECT_NEAR(carry_over(cell, 3, kSlice)->mean, 0, 1e-6);
  EXPECT_EQ(slot_effect(cell), std::nullopt) << "arms that take turns share all places";
  const auto none = with_slices(1);
  EXPECT_NEAR(carry_over(pointers(none), 2, kSlice)->mean, 0, 1e-6);
}

TEST(RowChecks, TellWhatFollowingAnotherArmCostsInSlicesOfOneStep) {
  // Every 8th step copies a cache, and a step of arm 2 after another arm's is 3 % longer.
  const auto with_slices = [](double carried) {
    auto blocks = blocks_of([](auto, auto, auto, auto step) { return kStep * (step % 8 == 0 ? 1.5 : 1.0); });
    for (BlockRecord& block : blocks) {
      for (VisitRecord& visit : block.visits) {
        visit.previous_arm_id = 0;
        for (std::size_t step = 0; step < visit.samples_ns.size(); ++step) {
          const bool follows_itself = step > 0 && visit.position % kArms == (step % 2 == 0 ? 0 : kArms - 1);
          if (visit.arm_id == 2 && !follows_itself) {
            visit.samples_ns[step] = std::llround(static_cast<double>(visit.samples_ns[step]) * carried);
          }
        }
      }
    }
    return blocks;
  };
  const auto carried = with_slices(1.03);
  EXPECT_NEAR(carry_over(pointers(carried), 2, 1)->mean, std::log(1.03), 1e-4);
  EXPECT_NEAR(carry_over(pointers(carried), 3, 1)->mean, 0, 1e-6);
  const auto none = with_slices(1);
  EXPECT_NEAR(carry_over(pointers(none), 2, 1)->mean, 0, 1e-6);
}

TEST(RowChecks, FlagAnArmThatGetsFasterWithinItsVisits) {
  const auto warming = blocks_of(
      [](auto arm, auto, auto, auto step) { return kStep * (arm == 2 && step < kCheckedSteps / 2 ? 1.02 : 1.0); });
  EXPECT_NEAR(slope_in_visits(pointers(warming), 2, 1)->mean, -std::log(1.02), 1e-3);
  EXPECT_EQ(check_row(pointers(warming), 0, 2, 1, 0.03, std::nullopt).flags, std::vector<std::string>{kSlopeFlag});
  const auto growing =
      blocks_of([](auto, auto, auto, auto step) { return kStep * (1 + 0.01 * static_cast<double>(step)); });
  EXPECT_EQ(check_row(pointers(growing), 0, 2, 1, 0.03, std::nullopt).flags, std::vector<std::string>())
      << "a cost that grows in both alike is no warm-up";
}

TEST(RowChecks, FlagAVerdictThatRestsOnFewSteps) {
  // Every eighth step of arm 2 is twice as long: the mean says slower, the median does not.
  const auto spiked =
      blocks_of([](auto arm, auto, auto, auto step) { return kStep * (arm == 2 && step % 8 == 0 ? 2.0 : 1.0); });
  EXPECT_EQ(check_row(pointers(spiked), 0, 2, 1, 0.03, Verdict::slower).flags,
            std::vector<std::string>{kMedianDiffersFlag});
  EXPECT_EQ(check_row(pointers(spiked), 0, 2, 1, 0.03, std::nullopt).flags, std::vector<std::string>());
}

TEST(RowChecks, SayNothingOfOneLaunch) {
  auto blocks = blocks_of([](auto, auto, auto, auto) { return kStep; });
  std::erase_if(blocks, [](const BlockRecord& block) { return block.launch > 0; });
  EXPECT_EQ(slot_effect(pointers(blocks)), std::nullopt);
  EXPECT_EQ(carry_over(pointers(blocks), 1, 0), std::nullopt);
}

}  // namespace
}  // namespace decodelab
