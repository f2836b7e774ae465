// Sampling parameters: what is refused, and in which words; and what each row of a batch gets.
#include "engine/sampling/sampling_parameters.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string refusal(const SamplingParameters& parameters) {
  try {
    check_sampling(parameters);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(SamplingParameters, AreNeutralAndGreedyByDefault) {
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({.sample = true}), "");
  EXPECT_FALSE(SamplingParameters{}.sample);
}

TEST(SamplingParameters, AreRefusedByTheNameOfTheirFlag) {
  for (const double bad : {0.0, -1.0, kNan, kInfinity}) {
    EXPECT_NE(refusal({.sample = true, .temperature = bad}).find("--temperature"), std::string::npos) << bad;
    EXPECT_NE(refusal({.repetition_penalty = bad}).find("--repetition-penalty"), std::string::npos) << bad;
  }
  for (const double bad : {0.0, -0.5, 1.0001, kNan}) {
    EXPECT_NE(refusal({.sample = true, .top_p = bad}).find("--top-p"), std::string::npos) << bad;
    EXPECT_NE(refusal({.sample = true, .typical_p = bad}).find("--typical-p"), std::string::npos) << bad;
  }
  EXPECT_NE(refusal({.sample = true, .top_k = -1}).find("--top-k -1: expected"), std::string::npos);
}

TEST(SamplingParameters, OfGreedyRowsMayOnlyPenalize) {
  EXPECT_EQ(refusal({.repetition_penalty = 1.2}), "");
  for (const SamplingParameters& idle :
       {SamplingParameters{.temperature = 0.5}, SamplingParameters{.top_k = 3}, SamplingParameters{.top_p = 0.5},
        SamplingParameters{.typical_p = 0.5}, SamplingParameters{.seed = 1}}) {
    EXPECT_NE(refusal(idle).find("add --sample"), std::string::npos);
  }
}

TEST(SamplingParameters, AreGivenForNoRowForAllRowsOrForEach) {
  EXPECT_EQ(complete_sampling({}, 3).size(), 3u);
  const std::vector<SamplingParameters> one{{.sample = true, .top_k = 4, .seed = 9}};
  for (const SamplingParameters& row : complete_sampling(one, 3)) {
    EXPECT_EQ(row.top_k, 4);
    EXPECT_EQ(row.seed, 9u);
  }
  const std::vector<SamplingParameters> two{{.sample = true, .top_k = 4, .seed = 1}, {}};
  EXPECT_EQ(complete_sampling(two, 2)[1].top_k, 0);
  EXPECT_THROW(complete_sampling(two, 3), std::invalid_argument);
  EXPECT_THROW(complete_sampling(std::vector<SamplingParameters>{{}, {.top_k = -1}}, 2), std::invalid_argument);
}

TEST(SamplingParameters, DrawASeedForEachSampledRowThatHasNone) {
  const std::vector<SamplingParameters> rows = complete_sampling(std::vector<SamplingParameters>{{.sample = true}}, 4);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    ASSERT_TRUE(rows[row].seed);
    EXPECT_LT(*rows[row].seed, std::uint64_t{1} << 53);
    EXPECT_NE(rows[row].seed, rows[(row + 1) % rows.size()].seed);
  }
  EXPECT_FALSE(complete_sampling({}, 1).front().seed) << "a greedy row needs none";
}

}  // namespace
}  // namespace decodelab
