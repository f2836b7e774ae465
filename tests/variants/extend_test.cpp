// Sessions that go on: text in pieces is the whole text, forks are runs of their own, and a row that was cut forgets,
// under every variant and every family.
#include <algorithm>
#include <iterator>
#include <set>

#include <gtest/gtest.h>

#include "engine/sequences/batch_state.h"
#include "tests/variants/arms.h"
#include "variants/presets.h"

namespace decodelab {
namespace {

using testing::arms_of_every_variant;
using testing::engine_for;
using testing::small_model;

using Rows = std::vector<std::vector<std::int64_t>>;

constexpr int kStepsAfter = 6;

/// 40 tokens a row, so that pieces of 7 leave a rest.
Rows texts() {
  Rows rows;
  for (std::int64_t row = 0; row < 3; ++row) {
    std::vector<std::int64_t> text;
    for (std::int64_t token = 0; token < 40 - 11 * row; ++token) {
      text.push_back((13 * token + 29 * row + token * token) % 97);
    }
    rows.push_back(text);
  }
  return rows;
}

/// Piece `index` of each row, of `size` tokens; empty where a row has ended.
Rows piece(const Rows& rows, std::size_t index, std::size_t size) {
  Rows part;
  for (const std::vector<std::int64_t>& row : rows) {
    const std::size_t begin = std::min(row.size(), index * size);
    part.emplace_back(row.begin() + static_cast<std::ptrdiff_t>(begin),
                      row.begin() + static_cast<std::ptrdiff_t>(std::min(row.size(), begin + size)));
  }
  return part;
}

bool any(const Rows& rows) {
  return std::ranges::any_of(rows, [](const auto& row) { return !row.empty(); });
}

struct Decoded {
  Rows steps;
  std::vector<std::vector<float>> prompt_log_probs;
  std::vector<float> logits;
};

/// What a session says to what it holds.
Decoded go_on(Session& session) {
  Decoded said;
  StepResult step = session.choose();
  for (const RowDetails& details : step.details) {
    std::ranges::transform(details.prompt, std::back_inserter(said.prompt_log_probs.emplace_back()),
                           &TokenDetails::log_prob);
  }
  said.logits = session.last_logits();
  said.steps.push_back(step.token_ids);
  for (int count = 0; count < kStepsAfter; ++count) {
    said.steps.push_back(session.decode().token_ids);
  }
  return said;
}

SessionOptions extend_options(std::vector<SamplingParameters> sampling = {}) {
  return {.batch_size = 3,
          .max_tokens = 60,
          .details = {{.generated = {.log_prob = true}, .prompt = {.log_prob = true}}},
          .sampling = std::move(sampling)};
}

Decoded fed_in_pieces(const Engine& engine, std::size_t size) {
  Session session(engine, extend_options());
  for (std::size_t index = 0; any(piece(texts(), index, size)); ++index) {
    session.extend(piece(texts(), index, size));
  }
  return go_on(session);
}

void expect_same(const Decoded& got, const Decoded& expected, const std::string& what) {
  SCOPED_TRACE(what);
  EXPECT_EQ(got.steps, expected.steps);
  EXPECT_LT(testing::relative_difference(got.logits, expected.logits), testing::tolerance(ElementType::float32));
  ASSERT_EQ(got.prompt_log_probs.size(), expected.prompt_log_probs.size());
  for (std::size_t row = 0; row < expected.prompt_log_probs.size(); ++row) {
    ASSERT_EQ(got.prompt_log_probs[row].size(), texts()[row].size() - 1);
    EXPECT_LT(testing::relative_difference(got.prompt_log_probs[row], expected.prompt_log_probs[row]),
              testing::tolerance(ElementType::float32));
  }
}

std::vector<std::string> arms_of_this_device(const ModelConfig& config) {
  std::vector<std::string> arms = arms_of_every_variant();
  for (const Preset& preset : presets()) {
    arms.emplace_back(preset.name);
  }
  std::erase_if(arms, [&](const std::string& arm) {
    return !unsupported_reason(parse_arm(arm), {.config = config, .dtype = ElementType::float32, .device = "cpu"})
                .empty();
  });
  return arms;
}

TEST(Extend, InPiecesIsAPrefillOfTheWholeUnderEveryVariantAndFamily) {
  for (const ModelConfig& config :
       {testing::small_config(), testing::small_llama_config(), testing::small_gemma_config()}) {
    const auto model = small_model(config);
    const Decoded expected = fed_in_pieces(engine_for("causal", model), 64);
    std::size_t ran = 0;
    for (const std::string& arm : arms_of_this_device(config)) {
      const Engine engine = engine_for(arm, model);
      for (const std::size_t size : {1, 7, 64}) {
        expect_same(fed_in_pieces(engine, size), expected,
                    config.family + ", " + arm + ", pieces of " + std::to_string(size));
      }
      ++ran;
    }
    EXPECT_GT(ran, 15U);
  }
}

TEST(Extend, GoesOnAfterTurnsOfWhichSomeRowsHaveNone) {
  const auto model = small_model(testing::small_llama_config());
  for (const std::string arm : {"causal", "native", "flash", "causal,+packed-prefill,+varlen-flash-prefill"}) {
    const Engine engine = engine_for(arm, model);
    Session session(engine, extend_options());
    session.prefill(Rows{{1, 2, 3}, {4}, {5, 6}});
    const std::vector<std::int64_t> said = session.decode().token_ids;
    session.extend(Rows{{}, {7, 8, 9, 10}, {}});
    EXPECT_THROW(session.decode(), std::logic_error) << "nobody has chosen";
    session.extend(Rows{{11}, {}, {}});
    const Decoded got = go_on(session);
    for (std::size_t row = 0; row < 3; ++row) {
      // Alone, the row is fed its own tokens in one piece: its prompt, its first answer, its turn.
      Session alone(engine, {.batch_size = 1, .max_tokens = 60, .details = {}});
      std::vector<std::int64_t> text = Rows{{1, 2, 3}, {4}, {5, 6}}[row];
      text.push_back(alone.prefill(Rows{text}).token_ids.front());
      const Rows turns{{11}, {7, 8, 9, 10}, {}};
      text.insert(text.end(), turns[row].begin(), turns[row].end());
      Session whole(engine, {.batch_size = 1, .max_tokens = 60, .details = {}});
      whole.prefill(Rows{text});
      const std::vector<float> logits = whole.last_logits();
      const auto begin = got.logits.begin() + static_cast<std::ptrdiff_t>(row * logits.size());
      EXPECT_LT(testing::relative_difference({begin, begin + static_cast<std::ptrdiff_t>(logits.size())}, logits),
                testing::tolerance(ElementType::float32))
          << arm << ", row " << row;
    }
    EXPECT_EQ(said.size(), 3U);
  }
}

TEST(Extend, KnowsRepeatedTokensOfEveryPiece) {
  const auto model = small_model(testing::small_config());
  const std::vector<SamplingParameters> sampling{{.repetition_penalty = 3}, {}, {.repetition_penalty = 1.5}};
  for (const std::string arm : {"causal", "native"}) {
    const Engine engine = engine_for(arm, model);
    Session whole(engine, extend_options(sampling));
    whole.extend(texts());
    const Decoded expected = go_on(whole);
    Session cut(engine, extend_options(sampling));
    for (std::size_t index = 0; any(piece(texts(), index, 9)); ++index) {
      cut.extend(piece(texts(), index, 9));
    }
    EXPECT_EQ(go_on(cut).steps, expected.steps) << arm;
  }
}

TEST(Truncate, LetsARowForgetWhatItHeldAndTheOthersGoOn) {
  for (const ModelConfig& config : {testing::small_config(), testing::small_gemma_config()}) {
    const auto model = small_model(config);
    for (const std::string& arm : arms_of_this_device(config)) {
      const Engine engine = engine_for(arm, model);
      Session session(engine, extend_options());
      session.extend(texts());
      session.choose();
      for (int step = 0; step < 3; ++step) {
        session.decode();
      }
      // Row 1 goes back into its prompt and takes another end; what lay there is poison now.
      session.truncate(0, 40);
      session.truncate(1, 5);
      session.truncate(2, 18);
      session.extend(Rows{{}, {50, 51, 52}, {}});
      session.truncate(0, 39);
      session.truncate(2, 17);
      session.extend(Rows{{texts()[0].back()}, {}, {texts()[2][17]}});
      Rows expected_texts = texts();
      expected_texts[1].resize(5);
      expected_texts[1].insert(expected_texts[1].end(), {50, 51, 52});
      Session fresh(engine, extend_options());
      fresh.extend(expected_texts);
      EXPECT_EQ(session.lengths(), fresh.lengths());
      EXPECT_EQ(go_on(session).steps, go_on(fresh).steps) << config.family << ", " << arm;
    }
  }
}

TEST(Fork, GivesSamplesOfOnePromptTheTokensOfRunsWithTheirSeeds) {
  const auto model = small_model(testing::small_llama_config());
  const SamplingParameters wishes{.sample = true, .temperature = 1.5, .seed = 77};
  for (const std::string arm : {"causal", "causal,+vectorized-choice", "native", "native,+philox-rng"}) {
    const Engine engine = engine_for(arm, model);
    Session session(engine, {.batch_size = 1, .max_tokens = 60, .details = {}, .sampling = {wishes}});
    session.extend(Rows{texts()[2]});
    session.fork(std::vector<std::int64_t>{0, 0, 0, 0});
    Rows samples{session.choose().token_ids};
    for (int step = 0; step < kStepsAfter; ++step) {
      samples.push_back(session.decode().token_ids);
    }
    std::set<std::vector<std::int64_t>> different;
    for (std::size_t sample = 0; sample < 4; ++sample) {
      SamplingParameters alone = wishes;
      alone.seed = fork_seed(77, sample);
      const std::vector<std::int64_t> expected =
          generate(engine, {.prompts = {texts()[2]}, .max_tokens = kStepsAfter + 1, .details = {}, .sampling = {alone}})
              .front()
              .token_ids;
      std::vector<std::int64_t> got;
      for (const std::vector<std::int64_t>& step : samples) {
        got.push_back(step[sample]);
      }
      EXPECT_EQ(got, expected) << arm << ", sample " << sample;
      different.insert(got);
    }
    EXPECT_EQ(different.size(), 4U) << arm;
  }
}

TEST(Fork, OutlivesItsParentAndTakesSeedsThatItIsGiven) {
  const auto model = small_model(testing::small_config());
  const Engine engine = engine_for("native,+philox-rng", model);
  const SamplingParameters wishes{.sample = true, .temperature = 1.5, .seed = 1};
  Session session(engine, {.batch_size = 2, .max_tokens = 60, .details = {}, .sampling = {wishes, wishes}});
  session.extend(Rows{{1, 2, 3}, {4, 5, 6, 7}});
  session.fork(std::vector<std::int64_t>{1, 1}, std::vector<std::uint64_t>{8, 9});
  EXPECT_EQ(session.lengths(), (std::vector<std::int64_t>{4, 4}));
  const std::vector<std::int64_t> first = session.choose().token_ids;
  for (std::size_t row = 0; row < 2; ++row) {
    SamplingParameters alone = wishes;
    alone.seed = 8 + row;
    EXPECT_EQ(generate(engine, {.prompts = {{4, 5, 6, 7}}, .max_tokens = 1, .details = {}, .sampling = {alone}})
                  .front()
                  .token_ids.front(),
              first[row]);
  }
}

TEST(Extend, RefusesWhatMakesNoSense) {
  const Engine engine = engine_for("causal", small_model(testing::small_config()));
  Session session(engine, {.batch_size = 2, .max_tokens = 8, .details = {}});
  EXPECT_THROW(session.choose(), std::logic_error);
  EXPECT_THROW(session.extend(Rows{{}, {}}), std::invalid_argument);
  EXPECT_THROW(session.extend(Rows{{1}}), std::invalid_argument);
  EXPECT_THROW(session.extend(Rows{{97}, {}}), std::invalid_argument);
  session.extend(Rows{{1, 2, 3, 4, 5}, {1}});
  EXPECT_THROW(session.extend(Rows{{1, 2, 3, 4}, {}}), std::length_error);
  session.extend(Rows{{1, 2, 3}, {}});
  EXPECT_EQ(session.lengths(), (std::vector<std::int64_t>{8, 1})) << "what was refused left nothing behind";
  EXPECT_THROW(session.truncate(2, 0), std::invalid_argument);
  EXPECT_THROW(session.truncate(1, 2), std::invalid_argument);

  const Engine encodes = engine_for("causal", small_model(testing::small_t5_config()));
  Session prompted(encodes, {.batch_size = 1, .max_tokens = 8, .details = {}});
  prompted.extend(Rows{{1, 2, 3}});
  EXPECT_EQ(prompted.lengths(), (std::vector<std::int64_t>{1}));
  EXPECT_THROW(prompted.extend(Rows{{4}}), std::logic_error);
}

}  // namespace
}  // namespace decodelab
