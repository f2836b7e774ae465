// Sessions: rows do not see each other, and refuse what does not fit.
#include <algorithm>
#include <iterator>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/generation.h"
#include "tests/engine/test_model.h"

namespace decodelab {
namespace {

using testing::ragged_prompts;
using testing::small_config;
using testing::small_model;

std::vector<Completion> complete(const Engine& engine, const std::vector<std::vector<std::int64_t>>& prompts,
                                 std::int64_t max_tokens = 12) {
  return generate(engine, {.prompts = prompts,
                           .max_tokens = max_tokens,
                           .details = {{.generated = {.log_prob = true, .rank = true}, .prompt = {.log_prob = true}}},
                           .keep_prefill_logits = true});
}

std::vector<std::int64_t> ranks_of(const Completion& completion) {
  std::vector<std::int64_t> ranks;
  std::ranges::transform(completion.details, std::back_inserter(ranks), &TokenDetails::rank);
  return ranks;
}

TEST(Session, GivesEachRowOfARaggedBatchWhatItGivesThatRowAlone) {
  for (const bool multi_query : {true, false}) {
    const Engine engine(small_model(small_config(multi_query)), reference_plan());
    const std::vector<Completion> together = complete(engine, ragged_prompts());
    for (std::size_t row = 0; row < together.size(); ++row) {
      const Completion alone = complete(engine, {ragged_prompts()[row]}).front();
      EXPECT_EQ(together[row].token_ids, alone.token_ids) << "row " << row;
      EXPECT_EQ(ranks_of(together[row]), ranks_of(alone));
      EXPECT_LT(testing::relative_difference(together[row].prefill_logits, alone.prefill_logits),
                testing::tolerance(ElementType::float32));
      EXPECT_EQ(together[row].prompt_details.size(), ragged_prompts()[row].size() - 1);
    }
  }
}

TEST(Session, ChoosesTokensThatDependOnThePrompt) {
  const Engine engine(small_model(small_config()), reference_plan());
  const std::vector<Completion> completions = complete(engine, ragged_prompts());
  EXPECT_NE(completions[0].token_ids, completions[1].token_ids);
  EXPECT_NE(completions[1].token_ids, completions[2].token_ids);
}

TEST(Session, DecodesStepByStepWhatAPrefillOfTheWholeTextPredicts) {
  const Engine engine(small_model(small_config()), reference_plan());
  std::vector<std::int64_t> text{5, 17, 96};
  const Completion completion = complete(engine, {text}, 10).front();
  for (const std::int64_t token : completion.token_ids) {
    EXPECT_EQ(complete(engine, {text}, 1).front().token_ids.front(), token);
    text.push_back(token);
  }
}

TEST(Session, TellsTheRankAndTheLogProbabilityOfGreedyTokens) {
  const Engine engine(small_model(small_config()), reference_plan());
  for (const Completion& completion : complete(engine, ragged_prompts())) {
    EXPECT_EQ(ranks_of(completion), std::vector<std::int64_t>(completion.token_ids.size(), 1));
    for (const TokenDetails& token : completion.details) {
      EXPECT_LE(token.log_prob, 0.0f);
      EXPECT_GE(token.log_prob, -std::log(97.0f));
    }
  }
}

TEST(Session, ContinuesAlikeAfterATruncation) {
  const Engine engine(small_model(small_config()), reference_plan());
  Session session(engine, {.batch_size = 1, .max_tokens = 30, .details = {}});
  const std::vector<std::vector<std::int64_t>> prompt{{1, 2, 3, 4}};
  const std::int64_t first = session.prefill(prompt).token_ids.front();
  std::vector<std::int64_t> tokens;
  for (int step = 0; step < 5; ++step) {
    tokens.push_back(session.decode().token_ids.front());
  }
  session.truncate(4);
  session.force_tokens(std::vector<std::int64_t>{first});
  for (int step = 0; step < 5; ++step) {
    EXPECT_EQ(session.decode().token_ids.front(), tokens[static_cast<std::size_t>(step)]);
  }
}

TEST(Session, FillsItsCacheWithTheSameNumbersEveryTime) {
  const Engine engine(small_model(small_config()), reference_plan());
  const auto logits = [&](std::uint64_t seed) {
    Session session(engine, {.batch_size = 2, .max_tokens = 30, .details = {}});
    session.fill_random(20, seed);
    session.force_tokens(std::vector<std::int64_t>{3, 4});
    session.decode();
    EXPECT_EQ(session.lengths(), (std::vector<std::int64_t>{21, 21}));
    return session.last_logits();
  };
  EXPECT_EQ(logits(1), logits(1));
  EXPECT_NE(logits(1), logits(2));
}

TEST(Session, RefusesWhatDoesNotFit) {
  const Engine engine(small_model(small_config()), reference_plan());
  const SessionOptions options{.batch_size = 1, .max_tokens = 8, .details = {}};
  const auto prefill = [&](const std::vector<std::vector<std::int64_t>>& prompts) {
    return Session(engine, options).prefill(prompts);
  };
  EXPECT_THROW(Session(engine, {.batch_size = 0, .max_tokens = 8, .details = {}}), std::invalid_argument);
  EXPECT_THROW(Session(engine, {.batch_size = 1, .max_tokens = 65, .details = {}}), std::invalid_argument);
  EXPECT_THROW(prefill({{}}), std::invalid_argument);
  EXPECT_THROW(prefill({{1}, {2}}), std::invalid_argument);
  EXPECT_THROW(prefill({{97}}), std::invalid_argument);
  EXPECT_THROW(prefill({{-1}}), std::invalid_argument);
  EXPECT_THROW(prefill({{1, 2, 3, 4, 5, 6, 7, 8, 9}}), std::length_error);
  Session session(engine, options);
  EXPECT_THROW(session.decode(), std::logic_error);
  session.prefill(std::vector<std::vector<std::int64_t>>{{1, 2, 3, 4, 5, 6, 7, 8}});
  EXPECT_THROW(session.prefill(std::vector<std::vector<std::int64_t>>{{1}}), std::logic_error);
  EXPECT_THROW(session.decode(), std::length_error);
}

TEST(Generation, StopsARowAtTheEndOfSequenceTokenAndGoesOnWithTheOthers) {
  const Engine engine(small_model(small_config()), reference_plan());
  const std::vector<Completion> whole = complete(engine, ragged_prompts(), 12);
  const std::int64_t eos = whole[1].token_ids[3];
  const std::vector<Completion> cut =
      generate(engine, {.prompts = ragged_prompts(), .max_tokens = 12, .eos_token_ids = {eos}, .details = {}});
  for (std::size_t row = 0; row < whole.size(); ++row) {
    const auto end = std::find(whole[row].token_ids.begin(), whole[row].token_ids.end(), eos);
    EXPECT_EQ(cut[row].token_ids, std::vector<std::int64_t>(whole[row].token_ids.begin(), end)) << "row " << row;
    EXPECT_EQ(cut[row].finish_reason, end == whole[row].token_ids.end() ? "length" : "eos");
  }
  EXPECT_EQ(cut[1].finish_reason, "eos");
}

TEST(Session, GivesTokensOneStepLateWhereItDecodesAhead) {
  const Engine engine(small_model(small_config()), reference_plan());
  const std::vector<Completion> expected = complete(engine, ragged_prompts(), 4);
  const auto tokens = [&](std::size_t step) {
    std::vector<std::int64_t> of_step;
    for (const Completion& completion : expected) {
      of_step.push_back(completion.token_ids[step]);
    }
    return of_step;
  };
  Session session(engine, {.batch_size = 4, .max_tokens = 40, .details = {}});
  EXPECT_EQ(session.prefill(ragged_prompts()).token_ids, tokens(0));
  EXPECT_TRUE(session.decode_ahead().token_ids.empty());
  EXPECT_EQ(session.decode_ahead().token_ids, tokens(1));
  EXPECT_THROW(session.decode(), std::logic_error) << "tokens would be lost";
  EXPECT_THROW(session.filter(std::vector<std::int64_t>{0}), std::logic_error);
  EXPECT_EQ(session.read_last().token_ids, tokens(2));
  EXPECT_TRUE(session.read_last().token_ids.empty());
  EXPECT_EQ(session.decode().token_ids, tokens(3));
}

TEST(Session, LeavesLogitsAndNoTokensAfterAForwardStep) {
  const Engine engine(small_model(small_config()), reference_plan());
  Session chosen(engine, {.batch_size = 4, .max_tokens = 40, .details = {}});
  Session forward(engine, {.batch_size = 4, .max_tokens = 40, .details = {}});
  const std::vector<std::int64_t> first = chosen.prefill(ragged_prompts()).token_ids;
  forward.extend(ragged_prompts());
  EXPECT_EQ(forward.last_logits(), chosen.last_logits());
  EXPECT_THROW(forward.forward(), std::logic_error) << "nothing says what it is fed";
  forward.force_tokens(first);
  chosen.decode();
  forward.forward();
  EXPECT_EQ(forward.last_logits(), chosen.last_logits());
  EXPECT_EQ(forward.lengths(), chosen.lengths());
}

TEST(Generation, DropsRowsThatHaveEndedAndGoesOnWithTheOthersUnchanged) {
  const Engine engine(small_model(small_config()), reference_plan());
  const std::vector<Completion> whole = complete(engine, ragged_prompts(), 12);
  std::vector<std::size_t> taken(whole.size(), 0);
  GenerationRequest request{
      .prompts = ragged_prompts(), .max_tokens = 12, .details = {{.generated = {.log_prob = true}}}};
  // Row 0 ends first, then row 1, ...; so the batch is cut from 4 rows to 2, and to 1.
  request.stops = [&](std::size_t row, std::int64_t) { return ++taken[row] == 2 + 3 * row; };
  const std::vector<Completion> cut = generate(engine, request);
  for (std::size_t row = 0; row < whole.size(); ++row) {
    const auto end = whole[row].token_ids.begin() + static_cast<std::ptrdiff_t>(2 + 3 * row);
    EXPECT_EQ(cut[row].token_ids, std::vector<std::int64_t>(whole[row].token_ids.begin(), end)) << "row " << row;
    EXPECT_EQ(cut[row].finish_reason, "stop");
    for (std::size_t token = 0; token < cut[row].details.size(); ++token) {
      EXPECT_NEAR(cut[row].details[token].log_prob, whole[row].details[token].log_prob, 1e-4);
    }
  }
}

TEST(Generation, UsesEveryPositionOfTheModelAndNoneMore) {
  const Engine engine(small_model(small_config()), reference_plan());
  EXPECT_EQ(complete(engine, {{1, 2, 3, 4}}, 61).front().token_ids.size(), 61u);
  EXPECT_THROW(complete(engine, {{1, 2, 3, 4}}, 62), std::invalid_argument);
  EXPECT_THROW(complete(engine, {{1}}, 0), std::invalid_argument);
  EXPECT_THROW(complete(engine, {}, 1), std::invalid_argument);
}

}  // namespace
}  // namespace decodelab
