// Several looks at growing data err as often as one test may, on one side and on two, and each verdict asks for its
// rule.
#include "reports/statistics/looks.h"

#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/reports/message_of.h"
#include "tests/reports/sample_run.h"

namespace decodelab {
namespace {

using testing::message_of;
using testing::Noise;

constexpr double kMostFalseAlarms = 0.055;   // of a rule that promises .05
constexpr double kFewestFalseAlarms = 0.03;  // a rule that never alarms finds nothing either

LookContrast look_at(const std::vector<double>& values, double margin, const LookRule& rule = gate_looks()) {
  return decide_look({values}, {{margin, margin}}, rule).front();
}

std::vector<double> around(double center, double spread, std::size_t count, std::uint64_t seed = 1) {
  Noise noise(seed);
  std::vector<double> values;
  while (values.size() < count) {
    values.push_back(center + spread * noise());
  }
  return values;
}

// Student's t with 3 degrees of freedom: outliers as a shared machine makes them.
double heavy_tailed(Noise& noise) {
  double squares = 0;
  for (int i = 0; i < 3; ++i) {
    squares += std::pow(noise(), 2);
  }
  return noise() / std::sqrt(squares / 3);
}

TEST(Looks, CallSlowerOnlyWhatIsSignificantAndReachesTheMargin) {
  EXPECT_EQ(look_at(around(0.05, 0.005, 6), 0.03).verdict, LookVerdict::slower);
  const LookContrast below = look_at(around(0.025, 0.005, 6), 0.03);
  EXPECT_LE(below.p_family, 0.018) << "there is an effect";
  EXPECT_NE(below.verdict, LookVerdict::slower) << "but less than the margin";
  EXPECT_EQ(look_at(around(-0.05, 0.005, 6), 0.03).verdict, LookVerdict::within);
}

TEST(Looks, CallWithinOnlyWhatEndsBelowTheMargin) {
  const std::vector<double> values{-0.01, 0.02, 0.005, -0.004, 0.012, 0.001};
  const LookContrast wide = look_at(values, 0.0137);
  // numpy.mean, and scipy.stats.t.ppf(.982, 5) * scipy.stats.sem
  EXPECT_NEAR(wide.estimate, 0.004, 1e-15);
  EXPECT_NEAR(wide.interval->high, 0.01662037, 1e-7);
  EXPECT_NEAR(wide.interval->low, -0.00862037, 1e-7);
  EXPECT_EQ(wide.verdict, LookVerdict::undecided);
  EXPECT_EQ(look_at(values, 0.01663).verdict, LookVerdict::within);
  EXPECT_EQ(look_at(values, 0.01662).verdict, LookVerdict::undecided);
}

TEST(Looks, FindNothingBeforeTheFirstLookCouldBeSignificant) {
  EXPECT_EQ(look_at(around(0.05, 0.001, 5), 0.03).verdict, LookVerdict::undecided) << "1 / 2^5 is above .018";
  EXPECT_EQ(look_at(around(0.05, 0.001, 5), 0.03).mde, std::nullopt);
  EXPECT_EQ(look_at(around(0.05, 0.001, 6), 0.03).p_family, 1.0 / 64);
}

TEST(Looks, SayWhereStudentsTAndTheSignFlipsDisagree) {
  const LookContrast contrast = look_at({0.031, 0.032, 0.031, 0.033, 0.031, 0.9}, 0.03);
  EXPECT_LE(contrast.p_sign_flip, 0.018);
  EXPECT_GT(contrast.p_t, 0.018);
  EXPECT_TRUE(contrast.tests_disagree);
  EXPECT_EQ(contrast.verdict, LookVerdict::undecided);
}

TEST(Looks, AdviseSoManyMoreValuesThatTheyWouldDecide) {
  const std::vector<double> values{-0.01, 0.05, 0.03, 0.0, 0.04, 0.01};
  const LookContrast undecided = look_at(values, 0.03);
  ASSERT_EQ(undecided.verdict, LookVerdict::undecided);
  ASSERT_TRUE(undecided.more.has_value());
  EXPECT_GT(*undecided.more, 10U);
  std::vector<double> repeated;  // of the same mean and spread
  while (repeated.size() < values.size() + *undecided.more) {
    repeated.push_back(values[repeated.size() % values.size()]);
  }
  EXPECT_NE(look_at(repeated, 0.03).verdict, LookVerdict::undecided);
  EXPECT_EQ(look_at(around(0.05, 0.005, 6), 0.03).more, std::nullopt) << "it is decided";
}

TEST(Looks, LeaveOutWhatIsMissing) {
  std::vector<double> values = around(0.05, 0.005, 7);
  values[3] = kMissing;
  const LookContrast contrast = look_at(values, 0.03);
  EXPECT_EQ(contrast.values, 6U);
  EXPECT_EQ(contrast.verdict, LookVerdict::slower);
  const LookContrast nothing = look_at(std::vector<double>(6, kMissing), 0.03);
  EXPECT_EQ(nothing.verdict, LookVerdict::undecided);
  EXPECT_EQ(nothing.interval, std::nullopt);
  EXPECT_NE(message_of([] { decide_look({{1, 2}}, {}, gate_looks()); }).find("margin"), std::string::npos);
}

TEST(Looks, OfTheTwoSidedRuleKnowFasterAndSame) {
  EXPECT_EQ(decide_adaptive_look({around(-0.05, 0.005, 7)}).front().verdict, LookVerdict::faster);
  EXPECT_EQ(decide_adaptive_look({around(0.05, 0.005, 7)}).front().verdict, LookVerdict::slower);
  EXPECT_EQ(decide_adaptive_look({around(0, 0.002, 11)}).front().verdict, LookVerdict::within);
  EXPECT_EQ(decide_adaptive_look({around(0, 0.05, 7)}).front().verdict, LookVerdict::undecided);
  EXPECT_EQ(decide_adaptive_look({around(0.05, 0.0001, 6)}).front().verdict, LookVerdict::undecided)
      << "2 / 2^6 is above .0168";
}

TEST(Looks, GiveTheSameVerdictsWithAndWithoutTheirNumbers) {
  std::vector<int> seen(4);
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    std::vector<std::vector<double>> family;
    for (std::uint64_t j = 0; j < 3; ++j) {
      family.push_back(around(0.02 * static_cast<double>(seed % 5), 0.02, seed % 2 == 0 ? 7 : 16, 1000 * j + seed));
    }
    const std::vector<LookMargin> margins(3, {0.03, 0.03});
    for (const LookRule& rule : {gate_looks(), adaptive_looks()}) {
      const auto contrasts = decide_look(family, margins, rule);
      const auto verdicts = look_verdicts(family, margins, rule);
      for (std::size_t j = 0; j < 3; ++j) {
        EXPECT_EQ(contrasts[j].verdict, verdicts[j]) << seed;
        ++seen[static_cast<std::size_t>(verdicts[j])];
      }
    }
  }
  EXPECT_GT(seen[static_cast<std::size_t>(LookVerdict::slower)], 20);
  EXPECT_GT(seen[static_cast<std::size_t>(LookVerdict::within)], 20);
  EXPECT_GT(seen[static_cast<std::size_t>(LookVerdict::undecided)], 20);
}

/// Share of runs with true effects of 0 in which any look of the rule at margin 0 finds a difference in any contrast.
double false_alarms(const LookRule& rule, std::size_t contrasts, int runs, double (*deviate)(Noise&)) {
  Noise noise(11);
  int alarms = 0;
  for (int run = 0; run < runs; ++run) {
    std::vector<std::vector<double>> family(contrasts);
    bool alarm = false;
    for (const std::size_t look : rule.looks) {
      while (family.front().size() < look) {
        const double shared = contrasts > 1 ? deviate(noise) : 0;  // what a gate block does to all its cells
        for (auto& contrast : family) {
          contrast.push_back(shared + deviate(noise));
        }
      }
      for (const LookVerdict verdict : look_verdicts(family, std::vector<LookMargin>(contrasts), rule)) {
        alarm = alarm || verdict == LookVerdict::slower || verdict == LookVerdict::faster;
      }
      if (alarm) {
        break;
      }
    }
    alarms += alarm;
  }
  return static_cast<double>(alarms) / runs;
}

double normal(Noise& noise) { return noise(); }

TEST(Looks, OfTheGateGiveFalseAlarmsInAtMostOneOfTwentyGates) {
  const double share = false_alarms(gate_looks(), 1, 8000, normal);
  EXPECT_LE(share, kMostFalseAlarms);
  EXPECT_GE(share, kFewestFalseAlarms);
}

TEST(Looks, OfTheGateStandHeavyTails) {
  const double share = false_alarms(gate_looks(), 1, 8000, heavy_tailed);
  EXPECT_LE(share, kMostFalseAlarms);
  EXPECT_GE(share, kFewestFalseAlarms / 2) << "Student's t is careful with outliers";
}

TEST(Looks, OfTheTwoSidedRuleGiveFalseAlarmsInAtMostOneOfTwentyRuns) {
  for (const auto deviate : {normal, heavy_tailed}) {
    EXPECT_LE(false_alarms(adaptive_looks(), 1, 6000, deviate), kMostFalseAlarms);
  }
  EXPECT_GE(false_alarms(adaptive_looks(), 1, 6000, normal), kFewestFalseAlarms);
}

TEST(Looks, AtAWholeFamilyErrNoMoreOftenThanAtOneContrast) {
  const double share = false_alarms(gate_looks(), 4, 4500, normal);
  EXPECT_LE(share, kMostFalseAlarms);
  EXPECT_GE(share, kFewestFalseAlarms);
}

TEST(Looks, OfTheTwoSidedRuleAtAWholeFamilyErrNoMoreOftenThanAtOneContrast) {
  EXPECT_LE(false_alarms(adaptive_looks(), 4, 4500, normal), kMostFalseAlarms);
}

TEST(Looks, AtOneLookAFamilyOfCorrelatedContrastsKeepsItsLevel) {
  const LookRule rule{{10}, 0.05, 0.05, Sides::upper};
  const double share = false_alarms(rule, 12, 3000, normal);
  EXPECT_LE(share, kMostFalseAlarms);
  EXPECT_GE(share, kFewestFalseAlarms);
}

// That the unadjusted tests of so many cells would be caught by the test above.
TEST(Looks, WithoutMaxTAFamilyWouldErrMoreOften) {
  Noise noise(5);
  int alarms = 0;
  constexpr int kRuns = 500;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<std::vector<double>> family(12, std::vector<double>(10));
    for (auto& contrast : family) {
      for (double& value : contrast) {
        value = noise();
      }
    }
    bool alarm = false;
    for (const LookContrast& contrast :
         decide_look(family, std::vector<LookMargin>(12), {{10}, 0.05, 0.05, Sides::upper})) {
      alarm = alarm || contrast.p_sign_flip <= 0.05;
    }
    alarms += alarm;
  }
  EXPECT_GT(alarms, 0.3 * kRuns);
}

// The promise of the column "Detects".
TEST(Looks, TheDetectableEffectIsFoundWithEightyPerCentPower) {
  constexpr int kRuns = 500;
  constexpr double kMargin = 0.03;
  for (const double spread : {0.01, 0.05}) {  // the margin decides, the noise decides
    double promised = 0;
    for (int run = 0; run < kRuns; ++run) {
      promised += look_at(around(0, spread, 10, 1 + static_cast<std::uint64_t>(run)), kMargin).mde.value() / kRuns;
    }
    int found = 0;
    for (int run = 0; run < kRuns; ++run) {
      const auto values = around(std::log1p(promised), spread, 10, 90'000 + static_cast<std::uint64_t>(run));
      found += look_at(values, kMargin).verdict == LookVerdict::slower;
    }
    EXPECT_GE(found, 0.8 * kRuns) << spread;
  }
}

}  // namespace
}  // namespace decodelab
