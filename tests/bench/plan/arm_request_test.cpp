// What arms ask of each row, as the part of their names behind '@' says it.
#include "bench/plan/arm_request.h"

#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

TEST(ArmRequest, ReadsEverySettingInAnyOrderAndWritesThemInOne) {
  const ArmRequest request = parse_arm_request("@samples=4@regex=[a-z ]*@prefix=0.875");
  EXPECT_EQ(request.samples, 4);
  EXPECT_EQ(request.regex, "[a-z ]*");
  EXPECT_EQ(request.prefix, std::optional(0.875));
  EXPECT_EQ(to_string(request), "@prefix=0.875@regex=[a-z ]*@samples=4");
  EXPECT_EQ(parse_arm_request(to_string(request)), request);
}

TEST(ArmRequest, AsksNothingWhereNothingIsSaid) {
  EXPECT_FALSE(parse_arm_request("").any());
  EXPECT_EQ(to_string(ArmRequest()), "");
  EXPECT_EQ(to_string(parse_arm_request("@samples=1")), "") << "one sample is what every prompt has";
  EXPECT_EQ(to_string(parse_arm_request("@prefix=0")), "@prefix=0") << "an empty store is not the same as none";
}

TEST(ArmRequest, ReadsASignThatIsDoubledAsPartOfAValue) {
  const ArmRequest request = parse_arm_request("@regex=[a-z]+@@[a-z]+@samples=2");
  EXPECT_EQ(request.regex, "[a-z]+@[a-z]+");
  EXPECT_EQ(request.samples, 2);
  EXPECT_EQ(parse_arm_request(to_string(request)), request);
}

TEST(ArmRequest, HoldsOneTokenLessThanThePromptAtMost) {
  EXPECT_EQ(ArmRequest{.prefix = 0.875}.prefix_tokens(512), 448);
  EXPECT_EQ(ArmRequest{.prefix = 0.999}.prefix_tokens(1), 0);
  EXPECT_EQ(ArmRequest{}.prefix_tokens(512), 0);
}

TEST(ArmRequest, NamesWhichPromptsBeginAlike) {
  EXPECT_EQ(parse_arm_request("@prefix=0.5").beginnings, Beginnings::shared);
  EXPECT_EQ(parse_arm_request("@prefix=0.5:few-shot").beginnings, Beginnings::few_shot);
  EXPECT_EQ(to_string(parse_arm_request("@samples=2@prefix=0.5:turns")), "@prefix=0.5:turns@samples=2");
  EXPECT_EQ(to_string(parse_arm_request("@prefix=0.5:shared")), "@prefix=0.5");
}

/// Prompts of 8 tokens, those of prompt p being 10 p, 10 p + 1, ...
std::vector<std::vector<std::int64_t>> begun_alike(const char* request, std::int64_t rows, std::int64_t count) {
  std::vector<std::vector<std::int64_t>> prompts(static_cast<std::size_t>(count));
  for (std::int64_t prompt = 0; prompt < count; ++prompt) {
    for (std::int64_t token = 0; token < 8; ++token) {
      prompts[static_cast<std::size_t>(prompt)].push_back(10 * prompt + token);
    }
  }
  begin_alike(parse_arm_request(request), rows, prompts);
  return prompts;
}

TEST(Prompts, BeginAlikeAsTheirKindSays) {
  const auto plain = begun_alike("", 2, 6);
  EXPECT_EQ(plain[5].front(), 50);
  const auto shared = begun_alike("@prefix=0.5", 2, 6);
  EXPECT_EQ(shared[5], (std::vector<std::int64_t>{0, 1, 2, 3, 54, 55, 56, 57}));
  const auto few_shot = begun_alike("@prefix=0.5:few-shot", 2, 6);
  EXPECT_EQ(few_shot[1], (std::vector<std::int64_t>{0, 11, 12, 13, 14, 15, 16, 17})) << "one instruction";
  EXPECT_EQ(few_shot[5], (std::vector<std::int64_t>{0, 11, 12, 13, 54, 55, 56, 57})) << "the examples of prompt 1";
  const auto turns = begun_alike("@prefix=0.5:turns", 2, 6);
  EXPECT_EQ(turns[1], plain[1]) << "each row begins a conversation of its own";
  EXPECT_EQ(turns[3], (std::vector<std::int64_t>{10, 11, 12, 13, 34, 35, 36, 37}));
  EXPECT_EQ(turns[5], (std::vector<std::int64_t>{10, 11, 12, 13, 54, 55, 56, 57})) << "and goes on with it";
}

TEST(ArmRequest, ForbidsTheEndWhereAPatternIsAsked) {
  EXPECT_TRUE(parse_arm_request("@regex=a*").rules().forbid_eos);
  EXPECT_FALSE(parse_arm_request("@samples=2").rules().any());
}

TEST(ArmRequest, RefusesWhatItCannotReadInOneSentence) {
  const auto refused = [](const char* text, const std::vector<std::string>& words) {
    try {
      parse_arm_request(text);
      ADD_FAILURE() << "accepted " << text;
    } catch (const std::invalid_argument& error) {
      const std::string message = error.what();
      for (const std::string& word : words) {
        EXPECT_NE(message.find(word), std::string::npos) << message;
      }
    }
  };
  refused("@colour=red", {"'@colour=red'", "@regex", "@samples", "@prefix"});
  refused("@@samples=2", {"'@'", "no setting"});
  refused("@", {"'@'"});
  refused("@samples=0", {"'@samples=0'", "from 1"});
  refused("@samples=two", {"'@samples=two'"});
  refused("@prefix=1", {"'@prefix=1'", "below 1"});
  refused("@prefix=-0.5", {"'@prefix=-0.5'"});
  refused("@prefix=nan", {"'@prefix=nan'"});
  refused("@prefix", {"'@prefix'"});
  refused("@prefix=0.5:rounds", {"'@prefix=0.5:rounds'", ":few-shot", ":turns"});
  refused("@samples=2@samples=3", {"'@samples'", "twice"});
  refused("@regex=(", {"("});
  refused("@regex=", {"empty"});
}

TEST(ArmRequest, SaysWhichPhasesHaveNoUseForIt) {
  EXPECT_NE(unsupported_reason({.samples = 2}, Phase::decode), "");
  EXPECT_NE(unsupported_reason({.samples = 2}, Phase::batching), "");
  EXPECT_EQ(unsupported_reason({.samples = 2}, Phase::prefill), "");
  EXPECT_NE(unsupported_reason({.prefix = 0.5}, Phase::decode), "");
  EXPECT_EQ(unsupported_reason({.prefix = 0.5}, Phase::batching), "");
  for (const Phase phase : {Phase::prefill, Phase::decode, Phase::generate, Phase::batching}) {
    EXPECT_EQ(unsupported_reason({.regex = "a*"}, phase), "");
  }
}

TEST(ArmRequest, SaysWhichDetailsAndWhichDrawsAreWanted) {
  const ArmRequest request = parse_arm_request("@typical-p=0.5@top-tokens=20:text@prompt-top-tokens=3");
  EXPECT_EQ(request.typical_p, 0.5);
  EXPECT_EQ(request.details().generated.top, 20);
  EXPECT_TRUE(request.details().text);
  EXPECT_EQ(request.details().prompt.top, 3);
  EXPECT_EQ(to_string(request), "@prompt-top-tokens=3@top-tokens=20:text@typical-p=0.5");
  EXPECT_EQ(parse_arm_request(to_string(request)), request);
  for (const char* text : {"@typical-p=0", "@typical-p=1", "@typical-p=-1", "@typical-p=", "@top-tokens=0:text",
                           "@top-tokens=5:texts", "@top-tokens=-1", "@prompt-top-tokens=x"}) {
    EXPECT_THROW(parse_arm_request(text), std::invalid_argument) << text;
  }
}

}  // namespace
}  // namespace decodelab
