// Rounds of guesses as generate writes them.
#include "engine/sequences/round_trace.h"

#include <gtest/gtest.h>

#include "tests/engine/checkpoint/mutator.h"

namespace decodelab {
namespace {

constexpr const char* kLines = R"({"index":0,"prompt_ids":[1,2],"token_ids":[3],"rounds":[[4,4],[3,0],[0,0]]}

{"index":1,"error":"it has no prompt"}
{"index":2,"rounds":[]}
{"index":3,"rounds":[[7,2]]}
)";

std::string refusal_of_rounds(const std::string& text) {
  try {
    parse_round_trace(text, "trace.jsonl");
    return "accepted";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

TEST(RoundTrace, HoldsTheRoundsOfEachCompletionThatHasSome) {
  const std::vector<RoundCounts> completions = parse_round_trace(kLines, "trace.jsonl");
  ASSERT_EQ(completions.size(), 2u);
  ASSERT_EQ(completions[0].size(), 3u);
  EXPECT_EQ(completions[0][1].proposed, 3);
  EXPECT_EQ(completions[0][1].accepted, 0);
  EXPECT_EQ(completions[1][0].accepted, 2);
}

TEST(RoundTrace, IsRefusedWithItsLineAndWhatWasExpected) {
  EXPECT_NE(refusal_of_rounds("").find("generate --speculate N -o jsonl"), std::string::npos);
  EXPECT_NE(refusal_of_rounds("{\"index\":0}\n").find("holds no rounds"), std::string::npos);
  EXPECT_NE(refusal_of_rounds("{\"rounds\":[[1,1]]}\n{\"rounds\":[[1,2]]}").find("trace.jsonl, line 2: of 1 guesses 2"),
            std::string::npos);
  for (const char* wrong : {"{\"rounds\":7}", "{\"rounds\":[7]}", "{\"rounds\":[[1]]}", "{\"rounds\":[[1,-1]]}",
                            "{\"rounds\":[[1.5,1]]}", "{\"rounds\":[[99999999999,1]]}", "[1]", "{\"rounds\":[[1,1]]"}) {
    EXPECT_NE(refusal_of_rounds(wrong).find("trace.jsonl, line 1"), std::string::npos) << refusal_of_rounds(wrong);
  }
}

TEST(RoundTrace, IsReadOrRefusedWhereItIsDamaged) {
  fuzz(kLines, [](const std::string& file, Mutator& mutator) {
    for (const RoundCounts& rounds : parse_round_trace(mutator.mutate(file), "fuzz.jsonl")) {
      ASSERT_FALSE(rounds.empty());
      for (const RoundCount& round : rounds) {
        ASSERT_LE(round.accepted, round.proposed);
      }
    }
  });
}

}  // namespace
}  // namespace decodelab
