// The exponential race on the CPU's device: the tokens of race_on_cpu().
#include "variants/rng/philox_race.cuh"

#include <numeric>

#include "tests/cuda_on_cpu/kernel_test.h"
#include "variants/rng/philox_race.h"

namespace decodelab::cuda_on_cpu {
namespace {

using PhiloxRaceOnCpu = KernelTest;

struct Case {
  std::int64_t rows;
  std::int64_t vocabulary_size;
  std::int64_t kept;  ///< Tokens with a probability; the others have 0, as after top-k.
};

void expect_race(const Case& it) {
  SCOPED_TRACE(std::to_string(it.rows) + " rows of " + std::to_string(it.vocabulary_size));
  const auto [rows, V, kept] = it;
  Numbers numbers;
  std::vector<float> values(static_cast<std::size_t>(rows * V), 0.0f);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t index = 0; index < kept; ++index) {
      const std::int64_t token = (row * 31 + index * (V / kept)) % V;
      values[static_cast<std::size_t>(row * V + token)] = std::abs(numbers.next<float>());
    }
  }
  std::vector<std::int64_t> seed_values(static_cast<std::size_t>(rows));
  std::iota(seed_values.begin(), seed_values.end(), 1000);
  std::vector<std::int64_t> step_values(static_cast<std::size_t>(rows));
  std::iota(step_values.begin(), step_values.end(), 5);
  const Memory<float> probabilities("probabilities", values);
  const Memory<std::int64_t> seeds("seeds", seed_values);
  const Memory<std::int64_t> steps("steps", step_values);
  const Memory<std::int64_t> tokens("tokens", rows);
  launch_philox_race({.probabilities = probabilities.data(),
                      .rows = rows,
                      .vocabulary_size = V,
                      .seeds = seeds.data(),
                      .steps = steps.data(),
                      .tokens = tokens.data()},
                     nullptr);
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto index = static_cast<std::size_t>(row);
    const std::uint64_t best = race_on_cpu(values.data() + row * V, 0, V, seed_values[index], step_values[index]);
    EXPECT_EQ(tokens[row], race_winner(best)) << "row " << row;
    EXPECT_EQ(steps[row], step_values[index] + 1) << "row " << row;
  }
}

TEST_F(PhiloxRaceOnCpu, DrawsTheTokensOfTheLoopsOnTheCpu) {
  for (const std::uint64_t order : {0, 1, 2}) {
    machine().set_order(order);
    for (const Case it : {Case{1, 1, 1}, {2, 63, 63}, {3, 257, 257}, {1, 5003, 5003}, {2, 5003, 3}, {33, 300, 300}}) {
      expect_race(it);
      expect_no_faults();
    }
  }
  expect_all_launched("race");
}

}  // namespace
}  // namespace decodelab::cuda_on_cpu
