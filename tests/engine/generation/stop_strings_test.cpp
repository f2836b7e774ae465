// Stop strings: found wherever they lie in the tokens, and cut off.
#include "engine/generation/stop_strings.h"

#include <stdexcept>

#include <gtest/gtest.h>

#include "engine/generation.h"
#include "tests/engine/test_model.h"

namespace decodelab {
namespace {

const std::vector<std::string> kPieces{"The", " end", ".", "\n", "\n\n", "en", "d", "x"};

std::string piece(std::int64_t id) { return kPieces.at(static_cast<std::size_t>(id)); }

/// The text after `tokens`, and after how many of them it ended (0: never).
std::pair<std::string, std::size_t> run(const std::vector<std::string>& strings,
                                        const std::vector<std::int64_t>& tokens) {
  StopStrings stop(strings, piece, 1);
  for (std::size_t index = 0; index < tokens.size(); ++index) {
    if (stop.add(0, tokens[index])) {
      return {stop.text(0), index + 1};
    }
  }
  return {stop.text(0), 0};
}

using Ended = std::pair<std::string, std::size_t>;

TEST(StopStrings, EndTheTextBeforeThemInOneToken) { EXPECT_EQ(run({"."}, {0, 1, 2, 0}), Ended("The end", 3)); }

TEST(StopStrings, AreFoundWhereTheySpanTokens) {
  EXPECT_EQ(run({"e e"}, {0, 1, 2}), Ended("Th", 2));
  EXPECT_EQ(run({"end.\nx"}, {0, 1, 2, 3, 7, 0}), Ended("The ", 5));
  EXPECT_EQ(run({"end"}, {5, 6}), Ended("", 2));
}

TEST(StopStrings, AreFoundInTheMiddleOfAToken) { EXPECT_EQ(run({"n"}, {0, 1}), Ended("The e", 2)); }

TEST(StopStrings, EndTheTextBeforeTheFirstOfSeveralThatOneTokenCompletes) {
  EXPECT_EQ(run({"nd", " e"}, {0, 1}), Ended("The", 2));
  EXPECT_EQ(run({" e", "nd"}, {0, 1}), Ended("The", 2));
  EXPECT_EQ(run({"\n\n"}, {0, 3, 4}), Ended("The", 3)) << "the first of two overlapping places";
}

TEST(StopStrings, LeaveATextAloneThatNeverHoldsThem) {
  EXPECT_EQ(run({"end!"}, {0, 1, 2}), Ended("The end.", 0));
  EXPECT_EQ(run({}, {0, 1, 2}), Ended("The end.", 0));
}

TEST(StopStrings, KeepTheRowsApart) {
  StopStrings stop({"end"}, piece, 2);
  EXPECT_FALSE(stop.add(0, 5));
  EXPECT_FALSE(stop.add(1, 6));
  EXPECT_TRUE(stop.add(0, 6));
  EXPECT_EQ(stop.text(1), "d");
}

TEST(StopStrings, RefuseTheEmptyString) { EXPECT_THROW(StopStrings({"a", ""}, piece, 1), std::invalid_argument); }

TEST(Generation, EndsARowAtItsStopStringAndGoesOnWithTheOthers) {
  const Engine engine(testing::small_model(testing::small_config()), reference_plan());
  const GenerationRequest request{.prompts = testing::ragged_prompts(), .max_tokens = 8, .details = {}};
  const std::vector<Completion> whole = generate(engine, request);
  const auto text_of = [](std::int64_t id) { return "<" + std::to_string(id) + ">"; };
  const auto& tokens = whole[2].token_ids;
  // From the middle of the fourth token to the middle of the fifth.
  const std::string stop_string = text_of(tokens[3]).substr(1) + "<";
  StopStrings stop({stop_string}, text_of, whole.size());
  GenerationRequest stopped = request;
  stopped.stops = [&](std::size_t row, std::int64_t id) { return stop.add(row, id); };
  const std::vector<Completion> cut = generate(engine, stopped);
  for (std::size_t row = 0; row < whole.size(); ++row) {
    std::string text;
    std::size_t needed = 0;
    while (needed < whole[row].token_ids.size() && text.find(stop_string) == std::string::npos) {
      text += text_of(whole[row].token_ids[needed++]);
    }
    const std::size_t found = text.find(stop_string);
    EXPECT_EQ(cut[row].finish_reason, found == std::string::npos ? "length" : "stop") << "row " << row;
    EXPECT_EQ(stop.text(row), text.substr(0, found));
    EXPECT_EQ(cut[row].token_ids.size(), needed);
  }
  EXPECT_EQ(cut[2].finish_reason, "stop");
}

}  // namespace
}  // namespace decodelab
