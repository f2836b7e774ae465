// Tests of the axis grammar: what each form expands to, and that each mistake is refused by name.
#include "bench/plan/axis.h"

#include <array>
#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

using Values = std::vector<std::int64_t>;

const std::array<std::string, 3> kPhases = {"prefill", "decode", "generate"};

template <typename Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

std::string axis_refusal(std::string_view text, std::int64_t minimum = 1) {
  return refusal([&] { parse_axis("--batch", text, minimum); });
}

void expect_refusal(std::string_view text, std::string_view part, std::string_view reason) {
  const std::string message = axis_refusal(text);
  EXPECT_EQ(message.rfind("--batch: ", 0), 0U) << message;
  EXPECT_NE(message.find("'" + std::string(part) + "'"), std::string::npos) << message;
  EXPECT_NE(message.find(reason), std::string::npos) << message;
  EXPECT_NE(message.find("expected"), std::string::npos) << message;
  EXPECT_EQ(message.find('.'), message.size() - 1) << "one sentence: " << message;
}

TEST(Axis, TakesASingleNumber) { EXPECT_EQ(parse_axis("--batch", "7"), Values({7})); }

TEST(Axis, SortsAListAndDropsDuplicates) { EXPECT_EQ(parse_axis("--batch", "8,1,4,1"), Values({1, 4, 8})); }

TEST(Axis, CountsARangeByOne) { EXPECT_EQ(parse_axis("--batch", "3-6"), Values({3, 4, 5, 6})); }

TEST(Axis, CountsARangeByItsStep) { EXPECT_EQ(parse_axis("--batch", "1-10+4"), Values({1, 5, 9})); }

TEST(Axis, IncludesTheEndThatAStepMeets) { EXPECT_EQ(parse_axis("--batch", "64-192+64"), Values({64, 128, 192})); }

TEST(Axis, StaysAtTheFirstNumberWhenTheStepIsLargerThanTheRange) {
  EXPECT_EQ(parse_axis("--batch", "5-6+100"), Values({5}));
}

TEST(Axis, MultipliesByItsFactor) { EXPECT_EQ(parse_axis("--batch", "4-64x2"), Values({4, 8, 16, 32, 64})); }

TEST(Axis, StopsBelowAnEndThatTheFactorDoesNotMeet) {
  EXPECT_EQ(parse_axis("--batch", "1-10x2"), Values({1, 2, 4, 8}));
}

TEST(Axis, ReadsAStarAsAFactor) { EXPECT_EQ(parse_axis("--batch", "1-27*3"), parse_axis("--batch", "1-27x3")); }

TEST(Axis, JoinsFormsByCommas) {
  EXPECT_EQ(parse_axis("--batch", "1,4-64x2,5-7"), Values({1, 4, 5, 6, 7, 8, 16, 32, 64}));
}

TEST(Axis, TakesARangeOfOneNumber) { EXPECT_EQ(parse_axis("--batch", "4-4"), Values({4})); }

TEST(Axis, ReachesTheLargestNumberWithoutOverflow) {
  const std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(parse_axis("--batch", "9223372036854775806-9223372036854775807"), Values({largest - 1, largest}));
  EXPECT_EQ(parse_axis("--batch", "1-9223372036854775807x4611686018427387904").back(), 4611686018427387904);
}

TEST(Axis, TakesZeroWhereTheMinimumAllowsIt) { EXPECT_EQ(parse_axis("--length", "0-2", 0), Values({0, 1, 2})); }

TEST(Axis, RefusesAnEmptyList) {
  EXPECT_NE(axis_refusal("").find("--batch: the list is empty; expected"), std::string::npos);
}

TEST(Axis, RefusesAnEmptyPart) {
  expect_refusal("1,,2", "", "is empty");
  expect_refusal("1,", "", "is empty");
}

TEST(Axis, RefusesWhatIsNotANumber) {
  expect_refusal("1,two", "two", "not a number");
  expect_refusal("1-x2", "1-x2", "not a number");
  expect_refusal("4x2", "4x2", "not a number");
  expect_refusal("1-2-3", "1-2-3", "not a number");
  expect_refusal("1 ,2", "1 ", "not a number");
  expect_refusal("1-8+", "1-8+", "not a number");
  expect_refusal("0x10", "0x10", "not a number");
}

TEST(Axis, RefusesANumberThatOverflows) { expect_refusal("9223372036854775808", "9223372036854775808", "too large"); }

TEST(Axis, RefusesANumberBelowTheMinimum) {
  expect_refusal("0", "0", "at least 1");
  expect_refusal("1,0-4", "0-4", "at least 1");
  expect_refusal("-3", "-3", "at least 1");
}

TEST(Axis, RefusesAReversedRange) { expect_refusal("8-1", "8-1", "as in 1-8"); }

TEST(Axis, RefusesAStepOfZero) { expect_refusal("1-8+0", "1-8+0", "step of at least 1"); }

TEST(Axis, RefusesAFactorThatDoesNotGrow) {
  expect_refusal("1-8x1", "1-8x1", "factor of at least 2");
  expect_refusal("1-8x0", "1-8x0", "factor of at least 2");
}

TEST(Axis, RefusesToMultiplyFromZero) { EXPECT_NE(axis_refusal("0-8x2", 0).find("never grows"), std::string::npos); }

TEST(Axis, RefusesMoreThanAHundredThousandValues) {
  EXPECT_EQ(parse_axis("--batch", "1-100000").size(), 100'000U);
  expect_refusal("1-100001", "1-100001", "100000 values");
  expect_refusal("1-60000,1-60000", "1-60000", "100000 values");
  expect_refusal("1-9223372036854775807", "1-9223372036854775807", "100000 values");
}

TEST(Words, KeepTheOrderOfFirstMention) {
  EXPECT_EQ(parse_words("--phase", "decode,prefill,decode", kPhases), std::vector<std::string>({"decode", "prefill"}));
}

TEST(Words, NameTheAllowedOnesWhenOneIsUnknown) {
  EXPECT_EQ(refusal([] { parse_words("--phase", "prefill,decoed", kPhases); }),
            "--phase: 'decoed' is not a word of this flag; expected one or more of prefill, decode, generate; did you "
            "mean 'decode'?");
}

TEST(Words, NameTheAllowedOnesWhenTheListIsEmpty) {
  EXPECT_NE(refusal([] { parse_words("--phase", "", kPhases); }).find("prefill, decode, generate"), std::string::npos);
  EXPECT_NE(refusal([] { parse_words("--phase", "decode,", kPhases); }).find("prefill, decode, generate"),
            std::string::npos);
}

TEST(Limits, AreMillisecondsOfOneOrBothTimes) {
  EXPECT_EQ(parse_limits("--goodput", ""), RequestLimits{});
  EXPECT_EQ(parse_limits("--goodput", "ttft=200"), (RequestLimits{.ttft_ms = 200}));
  EXPECT_EQ(parse_limits("--goodput", "tpot=50.5,ttft=200"), (RequestLimits{.ttft_ms = 200, .tpot_ms = 50.5}));
  for (const char* text : {"200", "ttft", "ttft=", "ttft=0", "ttft=-1", "ttft=inf", "ttft=1ms", "first=200",
                           "ttft=200,ttft=100", "ttft=200,"}) {
    EXPECT_NE(refusal([&] { parse_limits("--goodput", text); }).find("ttft=200,tpot=50"), std::string::npos) << text;
  }
}

TEST(Rates, AreNumbersOrNoLimit) {
  EXPECT_EQ(parse_rates("--request-rate", "inf,2.5,100,2.5"), (std::vector<double>{0, 2.5, 100}));
  for (const char* text : {"", "0", "-1", "2,", "x", "nan", "2/s"}) {
    EXPECT_THROW(parse_rates("--request-rate", text), std::invalid_argument) << text;
  }
}

}  // namespace
}  // namespace decodelab
