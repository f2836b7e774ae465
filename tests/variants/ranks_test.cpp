// Ranks share a model, and no token changes.
#include <algorithm>

#include <gtest/gtest.h>

#include "engine/batching.h"
#include "engine/ranks/rank_failed.h"
#include "profiles/range.h"
#include "tests/variants/arms.h"

namespace decodelab {
namespace {

using testing::engine_for;
using testing::ragged_prompts;
using testing::small_config;
using testing::small_gemma_config;
using testing::small_llama_config;
using testing::small_model;
using testing::small_t5_config;

constexpr std::int64_t kTokens = 20;

/// A model of every family, with what sets the family's weights apart.
std::vector<ModelConfig> every_family() {
  ModelConfig gpt2 = small_config(false);
  gpt2.family = "gpt2";
  ModelConfig neox = small_config(false, Activation::gelu_erf);
  neox.family = "gpt_neox";
  neox.rotary = {{.theta = 10000, .dims = 4}};
  neox.recipes.assign(2, {.rotary = 0});
  neox.tied_head = false;
  neox.parallel_residual = neox.qkv_bias = neox.attention_out_bias = true;
  ModelConfig in_sequence = neox;
  in_sequence.parallel_residual = false;
  ModelConfig mistral = small_llama_config();
  mistral.family = "mistral";
  mistral.recipes.assign(2, {.rotary = 0, .window = 7});
  ModelConfig qwen2 = small_llama_config();
  qwen2.family = "qwen2";
  qwen2.qkv_bias = true;
  ModelConfig qwen3 = small_llama_config();
  qwen3.family = "qwen3";
  qwen3.qk_norm = true;
  ModelConfig smollm3 = small_llama_config();
  smollm3.family = "smollm3";
  smollm3.recipes = {{.rotary = 0}, {}};
  smollm3.mlp_bias = true;
  ModelConfig t5 = small_t5_config();
  t5.heads = t5.kv_heads = 4;
  return {small_config(),
          small_config(false),
          gpt2,
          neox,
          in_sequence,
          small_llama_config(),
          mistral,
          qwen2,
          qwen3,
          smollm3,
          t5,
          small_gemma_config()};
}

std::vector<std::vector<std::int64_t>> tokens(const std::string& arm, const std::shared_ptr<const Model>& model) {
  std::vector<std::vector<std::int64_t>> said;
  for (const Completion& completion :
       generate(engine_for(arm, model), {.prompts = ragged_prompts(), .max_tokens = kTokens})) {
    said.push_back(completion.token_ids);
  }
  return said;
}

std::string with_ranks(const std::string& arm, std::int64_t ranks) {
  return arm + ",+thread-ranks:ranks=" + std::to_string(ranks);
}

TEST(Ranks, SayWhatOneRankSaysInEveryFamily) {
  std::size_t compared = 0;
  for (const ModelConfig& config : every_family()) {
    const auto model = small_model(config);
    const auto expected = tokens("causal", model);
    for (const std::int64_t ranks : {2, 3, 4}) {
      if (!reason_against_ranks(config, ranks).empty()) {
        continue;
      }
      ++compared;
      for (const char* arm : {"causal", "native"}) {
        if (unsupported_reason(parse_arm(arm), {.config = config, .dtype = model->dtype(), .device = "cpu"}).empty()) {
          EXPECT_EQ(tokens(with_ranks(arm, ranks), model), expected) << config.family << ", " << arm << ", " << ranks;
        }
      }
    }
  }
  EXPECT_GE(compared, 14u);
}

TEST(Ranks, StayNearOneRankIn16Bits) {
  for (const ElementType dtype : {ElementType::bfloat16, ElementType::float16}) {
    const auto model = small_model(small_llama_config(), dtype);
    const auto fed = generate(engine_for("causal", model), {.prompts = ragged_prompts(), .max_tokens = kTokens});
    const auto expected = testing::forced_logits(engine_for("causal", model), fed, kTokens - 1);
    const auto got = testing::forced_logits(engine_for(with_ranks("causal", 2), model), fed, kTokens - 1);
    for (std::size_t step = 0; step < expected.size(); ++step) {
      EXPECT_LT(testing::relative_difference(got[step], expected[step]), testing::tolerance(dtype)) << step;
    }
  }
}

TEST(Ranks, FollowRowsThatJoinAndLeaveABatch) {
  const auto model = small_model(small_llama_config());
  const auto serve = [&](const std::string& arm) {
    const Engine engine = engine_for(arm, model);
    Session session(engine, {.batch_size = 2, .max_tokens = 40, .details = {}, .sampling = {}});
    std::vector<std::int64_t> said;
    const auto add = [&](const StepResult& step) { std::ranges::copy(step.token_ids, std::back_inserter(said)); };
    add(session.prefill(std::vector<std::vector<std::int64_t>>{{5, 6, 7}, {8, 9}}));
    add(session.decode());
    Session joins(engine, {.batch_size = 1, .max_tokens = 40, .details = {}, .sampling = {}});
    add(joins.prefill(std::vector<std::vector<std::int64_t>>{{11, 12, 13, 14}}));
    session.concatenate(std::move(joins));
    add(session.decode());
    session.fork(std::vector<std::int64_t>{2, 0, 2});
    add(session.decode());
    session.filter(std::vector<std::int64_t>{1, 2});
    add(session.decode());
    session.truncate(0, 3);
    session.force_tokens(std::vector<std::int64_t>{4, 4});
    add(session.decode());
    return said;
  };
  EXPECT_EQ(serve(with_ranks("causal", 2)), serve("causal"));
}

TEST(Ranks, FillWhatOneRankFillsAndRestoreIt) {
  for (const ModelConfig& config : {small_config(), small_llama_config(), every_family().at(10)}) {
    const auto model = small_model(config);
    const auto run = [&](const std::string& arm) {
      const Engine engine = engine_for(arm, model);
      std::vector<std::int64_t> said;
      FilledCache filled;
      {
        Session session(engine, {.batch_size = 3, .max_tokens = 40, .details = {}, .sampling = {}});
        session.fill_random(9, 5);
        filled = session.filled();
      }
      for (int repetition = 0; repetition < 2; ++repetition) {
        Session session(engine, {.batch_size = 3, .max_tokens = 40, .details = {}, .sampling = {}});
        session.fill(filled);
        session.force_tokens(std::vector<std::int64_t>{1, 2, 3});
        for (int step = 0; step < 5; ++step) {
          std::ranges::copy(session.decode().token_ids, std::back_inserter(said));
        }
      }
      return said;
    };
    EXPECT_EQ(run(with_ranks("causal", 2)), run("causal")) << config.family;
  }
}

TEST(Ranks, NoteTheirLayersAndStagesWhileSomebodyLooks) {
  const ModelConfig config = small_config();
  const Engine engine = engine_for(with_ranks("causal", 4), small_model(config));
  Session session(engine, {.batch_size = 2, .max_tokens = 40, .details = {}, .sampling = {}});
  session.prefill(std::vector<std::vector<std::int64_t>>{{5, 6, 7}, {8, 9}});
  for (const std::int64_t steps : {3, 1}) {
    engine.record_ranks();
    for (std::int64_t step = 0; step < steps; ++step) {
      session.decode();
    }
    const std::vector<RankRecord> records = engine.recorded_ranks();
    ASSERT_EQ(records.size(), 3u);
    for (const RankRecord& record : records) {
      const auto count = [&](auto&& is) { return std::ranges::count_if(record.ranges, is); };
      EXPECT_EQ(count([](const RankRange& range) { return range.is_layer; }), steps * config.layers);
      EXPECT_EQ(count([](const RankRange& range) { return !range.is_layer && range.stage == Stage::mlp; }),
                steps * config.layers);
      // Two sums a layer, and the logits of the step.
      EXPECT_EQ(count([](const RankRange& range) { return !range.is_layer && range.stage == Stage::all_reduce; }),
                steps * (2 * config.layers + 1));
      EXPECT_EQ(record.dropped, 0);
    }
    EXPECT_NE(records[0].thread, records[1].thread);
  }
  EXPECT_TRUE(engine_for("causal", small_model(config)).recorded_ranks().empty());
}

TEST(Ranks, CheckGuessesOfADraftThatIsWholeOnTheFirst) {
  const auto model = small_model(small_llama_config());
  const auto expected = tokens("causal", model);
  for (const char* guesses : {"draft-model:draft=itself:tokens=3", "ngram-lookup", "early-exit:layers=1"}) {
    EXPECT_EQ(tokens(with_ranks("native", 2) + ",+" + guesses, model), expected) << guesses;
  }
}

TEST(Ranks, ShareADraftWhereTheyAreAskedTo) {
  const auto model = small_model(small_llama_config());
  const auto expected = tokens("causal", model);
  for (const std::string guesses : {"draft-model:draft=itself:tokens=3", "early-exit:layers=1"}) {
    EXPECT_EQ(tokens("native,+thread-ranks,+" + guesses + ":shared=1", model), expected) << guesses;
    for (const bool shared : {false, true}) {
      const std::string arm = "native,+shm-ranks,+" + guesses + (shared ? ":shared=1" : "");
      std::vector<std::string> started;
      const auto launch = [&](const RankStart& start) {
        started.push_back(start.draft.value_or("the model"));
        return testing::ranks_in_threads(arm, model)(start);
      };
      const Engine engine(model, bind_arm(parse_arm(arm), reference_plan()), {{"itself", Draft(model)}}, launch);
      std::vector<std::vector<std::int64_t>> said;
      for (const Completion& completion : generate(engine, {.prompts = ragged_prompts(), .max_tokens = kTokens})) {
        said.push_back(completion.token_ids);
      }
      EXPECT_EQ(said, expected) << arm;
      const std::string draft = guesses.starts_with("early") ? kSelfDraft : "itself";
      EXPECT_EQ(started,
                (shared ? std::vector<std::string>{"the model", draft} : std::vector<std::string>{"the model"}))
          << arm;
    }
  }
  const Arm alone = parse_arm("native,+early-exit:layers=1:shared=1");
  const std::string reason =
      unsupported_reason(alone, {.config = small_llama_config(), .dtype = ElementType::float32, .device = "cpu"});
  EXPECT_NE(reason.find("shared=1 needs ranks"), std::string::npos) << reason;
}

TEST(Ranks, ComputeDetailsOfPromptsAsOneRankDoes) {
  const auto model = small_model(small_config());
  const DetailsRequest details{.generated = {.log_prob = true, .top = 3}, .prompt = {.log_prob = true, .top = 2}};
  const auto run = [&](const std::string& arm) {
    return generate(engine_for(arm, model), {.prompts = ragged_prompts(), .max_tokens = 4, .details = {details}});
  };
  const std::vector<Completion> expected = run("native");
  const std::vector<Completion> got = run(with_ranks("native", 2));
  for (std::size_t row = 0; row < expected.size(); ++row) {
    ASSERT_EQ(got[row].prompt_details.size(), expected[row].prompt_details.size());
    for (std::size_t token = 0; token < expected[row].prompt_details.size(); ++token) {
      EXPECT_NEAR(got[row].prompt_details[token].log_prob, expected[row].prompt_details[token].log_prob, 1e-4);
    }
  }
}

TEST(Ranks, AreRefusedWhereAModelDoesNotDivide) {
  const ModelConfig config = small_t5_config();
  const std::string reason = unsupported_reason(parse_arm("causal,+thread-ranks:ranks=2"),
                                                {.config = config, .dtype = ElementType::float32, .device = "cpu"});
  EXPECT_NE(reason.find("3 heads, which 2 ranks cannot share evenly"), std::string::npos) << reason;
  EXPECT_THROW(engine_for("causal,+thread-ranks:ranks=2", small_model(config)), std::invalid_argument);
  EXPECT_NE(unsupported_reason(parse_arm("causal,+shm-ranks:ranks=3"),
                               {.config = config, .dtype = ElementType::float32, .device = "cuda:0"})
                .find("--device cpu"),
            std::string::npos);
}

TEST(Ranks, ThatCannotStartSayWhy) {
  const auto model = small_model(small_llama_config());
  const EnginePlan plan = bind_arm(parse_arm("causal,+shm-ranks"), reference_plan());
  EXPECT_THROW(Engine(model, plan), std::invalid_argument);
  const auto launch = [](const RankStart&) -> std::unique_ptr<RankElsewhere> {
    throw RankFailed("rank 1 of 2 cannot be started");
  };
  EXPECT_THROW(Engine(model, plan, {}, launch), RankFailed);
}

/// A rank that said it was ready, and has been killed since.
class KilledRank final : public RankElsewhere {
 public:
  explicit KilledRank(const RankStart& start) {
    RankMemory memory(start.memory_descriptor, start.rank);
    memory.meet();
  }
  void look() override { throw RankFailed("the process of rank 1 of 2 was killed by signal 9"); }
};

TEST(Ranks, StartAgainAfterOneOfThemWasKilled) {
  const auto model = small_model(small_llama_config());
  const std::string arm = "causal,+shm-ranks";
  int starts = 0;
  const auto launch = [&](const RankStart& start) -> std::unique_ptr<RankElsewhere> {
    if (++starts == 1) {
      return std::make_unique<KilledRank>(start);
    }
    return testing::ranks_in_threads(arm, model)(start);
  };
  const Engine engine(model, bind_arm(parse_arm(arm), reference_plan()), {}, launch);
  Session session(engine, {.batch_size = 4, .max_tokens = 40, .details = {}, .sampling = {}});
  try {
    session.prefill(ragged_prompts());
    FAIL() << "no rank was there to sum with";
  } catch (const RankFailed& error) {
    EXPECT_STREQ(error.what(), "the process of rank 1 of 2 was killed by signal 9");
  }
  EXPECT_THROW(session.prefill(ragged_prompts()), RankFailed) << "what the rank held is gone";
  std::vector<std::vector<std::int64_t>> said;
  for (const Completion& completion : generate(engine, {.prompts = ragged_prompts(), .max_tokens = kTokens})) {
    said.push_back(completion.token_ids);
  }
  EXPECT_EQ(said, tokens("causal", model));
  EXPECT_EQ(starts, 2);
}

TEST(Ranks, AreGivenUpWhereTheyFailAgainAndAgain) {
  const auto model = small_model(small_llama_config());
  const auto launch = [](const RankStart& start) { return std::make_unique<KilledRank>(start); };
  const Engine engine(model, bind_arm(parse_arm("causal,+shm-ranks"), reference_plan()), {}, launch);
  const auto prefill = [&] {
    Session session(engine, {.batch_size = 4, .max_tokens = 40, .details = {}, .sampling = {}});
    session.prefill(ragged_prompts());
  };
  for (int start = 0; start < 3; ++start) {
    EXPECT_THROW(prefill(), RankFailed);
  }
  try {
    prefill();
    FAIL() << "the ranks were started once more";
  } catch (const RankFailed& error) {
    EXPECT_STREQ(error.what(), "ranks of the model have failed 3 times, and are given up");
  }
}

}  // namespace
}  // namespace decodelab
