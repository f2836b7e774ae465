// Estimates agree with NumPy 2.4 and SciPy 1.17, whose expressions stand beside each number.
#include "reports/statistics/estimates.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

// np.random.default_rng(7).integers(1000, 9000, size=83)
const std::vector<std::int64_t> kSamples{
    8559, 6000, 6473, 8177, 5626, 7205, 7669, 2801, 1444, 3401, 3280, 7988, 8300, 1042, 4998, 7569, 2051,
    7376, 1952, 4743, 7531, 3424, 3732, 3227, 6755, 3038, 8923, 4560, 4825, 5036, 5660, 5427, 5075, 8964,
    7461, 7341, 6602, 5977, 3728, 8911, 4729, 2722, 7760, 2281, 7859, 5900, 1917, 1351, 4558, 1285, 2132,
    5119, 8762, 4729, 7467, 8337, 7587, 6033, 4531, 5112, 3130, 4974, 4035, 2980, 8946, 1094, 1777, 2539,
    8752, 6536, 8054, 2604, 6767, 3956, 4912, 1029, 5940, 7640, 6309, 2235, 5270, 3140, 8719};

std::span<const std::int64_t> first(std::size_t count) { return std::span(kSamples).first(count); }

TEST(Estimates, QuantilesAgreeWithNumpy) {
  // x = np.sort([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5.]); np.quantile(x, [0, .25, .5, .9, .99, 1]); x.mean()
  const std::vector<double> sorted{1, 1, 2, 3, 3, 4, 5, 5, 5, 6, 9};
  EXPECT_DOUBLE_EQ(quantile(sorted, 0), 1.0);
  EXPECT_DOUBLE_EQ(quantile(sorted, 0.25), 2.5);
  EXPECT_DOUBLE_EQ(quantile(sorted, 0.5), 4.0);
  EXPECT_DOUBLE_EQ(quantile(sorted, 0.9), 6.0);
  EXPECT_DOUBLE_EQ(quantile(sorted, 0.99), 8.7);
  EXPECT_DOUBLE_EQ(quantile(sorted, 1), 9.0);
  EXPECT_DOUBLE_EQ(mean(sorted), 4.0);
  EXPECT_DOUBLE_EQ(quantile(std::vector<double>{7}, 0.99), 7.0);
}

TEST(Estimates, RefuseNoValuesAndSharesOutsideOfOne) {
  EXPECT_THROW(mean({}), std::invalid_argument);
  EXPECT_THROW(quantile({}, 0.5), std::invalid_argument);
  EXPECT_THROW(visit_statistic({}), std::invalid_argument);
  EXPECT_THROW(quantile(std::vector<double>{1, 2}, 1.01), std::invalid_argument);
  EXPECT_THROW(student_t_quantile(0.9, 1), std::invalid_argument);
}

TEST(Estimates, TrimsEachResidueClassByTenPerCent) {
  // w = samples[:80].reshape(10, 8); np.mean(scipy.stats.trim_mean(w, 0.1, axis=0))
  EXPECT_DOUBLE_EQ(visit_statistic(kSamples), 5251.09375);
  // Four values a class: the outermost keep 0.6 of their weight. a = np.sort(w, axis=0);
  // np.mean((0.6 * a[0] + a[1] + a[2] + 0.6 * a[3]) / 3.2) for w = samples[:32].reshape(4, 8)
  EXPECT_DOUBLE_EQ(visit_statistic(first(32)), 5231.375);
}

TEST(Estimates, LeavesABrokenPeriodOutAndTakesThePlainMeanOfFewSteps) {
  EXPECT_DOUBLE_EQ(visit_statistic(first(8)), 6563.75);   // samples[:8].mean()
  EXPECT_DOUBLE_EQ(visit_statistic(first(15)), 6563.75);  // the second period is broken
  EXPECT_DOUBLE_EQ(visit_statistic(first(5)), 6967.0);    // samples[:5].mean()
}

TEST(Estimates, CountsACostOfEveryEighthStepInFull) {
  std::vector<std::int64_t> samples(64, 1000);
  for (std::size_t i = 7; i < samples.size(); i += 8) {
    samples[i] = 9000;
  }
  EXPECT_DOUBLE_EQ(visit_statistic(samples), 2000.0);
  samples[0] = 1'000'000'000;  // one hiccup keeps a fifth of its weight in its class
  EXPECT_LT(visit_statistic(samples), mean(std::vector<double>(samples.begin(), samples.end())) / 3);
}

TEST(Estimates, StudentQuantilesAgreeWithScipy) {
  EXPECT_NEAR(student_t_quantile(0.975, 5), 2.7764451051977934, 1e-9);  // scipy.stats.t.ppf(.975, 4)
  EXPECT_NEAR(student_t_quantile(0.8, 2), 1.3763819204711738, 1e-9);    // scipy.stats.t.ppf(.8, 1)
  EXPECT_NEAR(student_t_quantile(0.975, 10), 2.262157162798205, 1e-9);  // scipy.stats.t.ppf(.975, 9)
}

TEST(Estimates, IntervalsAndDetectableMeansAgreeWithScipy) {
  const std::vector<double> d{-0.3110, -0.2984, -0.3352, -0.3219, -0.3093};
  // t.interval(.95, 4, loc=d.mean(), scale=scipy.stats.sem(d))
  const auto interval = mean_interval(d);
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->low, -0.3324941363906616, 1e-12);
  EXPECT_NEAR(interval->high, -0.2978258636093384, 1e-12);
  // s = d.std(ddof=1) * np.sqrt(4 / chi2.ppf(.1, 4)); (t.ppf(.975, 4) + t.ppf(.8, 4)) * s / np.sqrt(5)
  EXPECT_NEAR(detectable_mean(d).value_or(0), 0.0450079917679602, 1e-12);
}

TEST(Estimates, HaveNoIntervalForOneValue) {
  EXPECT_FALSE(mean_interval(std::vector<double>{1}));
  EXPECT_FALSE(detectable_mean(std::vector<double>{1}));
}

}  // namespace
}  // namespace decodelab
