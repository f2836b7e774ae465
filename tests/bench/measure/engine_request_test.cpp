// What a worker of our own engine does where its arm asks more of each row than the prompt.
#include <algorithm>

#include <gtest/gtest.h>

#include "bench/measure/engine_worker.h"
#include "bench/measure/output_masks.h"
#include "tests/variants/arms.h"

namespace decodelab {
namespace {

using testing::small_config;
using testing::small_model;

CellRecord request_cell(Phase phase, const std::string& dtype = "fp32") {
  return {.phase = phase,
          .batch = 2,
          .length = 16,
          .dtype = dtype,
          .device = "cpu",
          .threads = 1,
          .scope = phase == Phase::generate ? "generate" : (phase == Phase::batching ? "served" : "step"),
          .steps = 2};
}

/// Every id stands for one of three letters, but for the id 0, which ends a completion.
std::shared_ptr<const MaskVocabulary> three_letters() {
  std::vector<std::string> texts{""};
  while (std::ssize(texts) < small_config().vocabulary_size) {
    texts.emplace_back(1, static_cast<char>('a' + texts.size() % 3));
  }
  return std::make_shared<const MaskVocabulary>(texts, std::vector<std::int64_t>{0});
}

std::unique_ptr<Worker> asked(const std::string& name, std::shared_ptr<const MaskVocabulary> vocabulary = nullptr) {
  const Arm arm = parse_arm(name);
  return make_engine_worker(
      std::make_shared<const Engine>(small_model(small_config()), bind_arm(arm, reference_plan())), arm,
      {.max_tokens = 5, .vocabulary = std::move(vocabulary)});
}

TEST(RequestOfAnArm, HoldsAShareOfEachPromptInAStoreBeforeEachStep) {
  const CellRecord cell = request_cell(Phase::prefill);
  const Probe hit = asked("causal,+copied-prefix@prefix=0.75")->probe(cell);
  EXPECT_EQ(hit.engaged, std::optional(true)) << hit.missing;
  EXPECT_EQ(hit.counters.at("prefix_lookups"), 2);
  EXPECT_EQ(hit.counters.at("prefix_tokens"), 2 * 12);
  EXPECT_TRUE(hit.unsteady.empty()) << "what a step leaves in the store is gone before the next";
  const Probe cold = asked("causal,+copied-prefix@prefix=0")->probe(cell);
  EXPECT_EQ(cold.engaged, std::optional(true)) << cold.missing;
  EXPECT_EQ(cold.counters.at("prefix_lookups"), 2);
  EXPECT_FALSE(cold.counters.contains("prefix_tokens"));
  EXPECT_LT(hit.counters.at("modelled_flops"), cold.counters.at("modelled_flops"));
}

TEST(RequestOfAnArm, ComputesTheSameTokensWithAStoreAndWithout) {
  for (const Phase phase : {Phase::prefill, Phase::generate, Phase::batching}) {
    const CellRecord cell = request_cell(phase);
    const OutputTrace expected = asked("causal@prefix=0.5")->outputs(cell, 4, nullptr);
    for (const char* arm : {"causal,+copied-prefix@prefix=0.5", "causal,+forced-miss@prefix=0.5",
                            "causal,+shared-prefix,+kv-paged,+split-kv-decode@prefix=0.5"}) {
      EXPECT_EQ(asked(arm)->outputs(cell, 4, nullptr).tokens, expected.tokens) << to_string(phase) << ' ' << arm;
    }
  }
}

TEST(RequestOfAnArm, HoldsTheBeginningsOfEveryKindOfPrompts) {
  for (const char* kind : {"", ":few-shot", ":turns"}) {
    for (const char* arm : {"causal,+copied-prefix", "causal,+shared-prefix,+kv-paged,+split-kv-decode"}) {
      const std::string name = std::string(arm) + "@prefix=0.75" + kind;
      const Probe hit = asked(name)->probe(request_cell(Phase::prefill));
      EXPECT_EQ(hit.engaged, std::optional(true)) << name << ": " << hit.missing;
      EXPECT_EQ(hit.counters.at("prefix_tokens"), 2 * 12) << name;
      EXPECT_TRUE(hit.unsteady.empty()) << name << ": " << hit.unsteady;
      EXPECT_GT(asked(std::string(arm) + ",+concatenate-filter@prefix=0.5" + kind)
                    ->probe(request_cell(Phase::batching))
                    .counters["prefix_tokens"],
                0)
          << name;
    }
  }
}

TEST(RequestOfAnArm, MissesOnPurposeWhatTheStoreHolds) {
  const Probe miss = asked("causal,+forced-miss@prefix=0.75")->probe(request_cell(Phase::prefill));
  EXPECT_EQ(miss.engaged, std::optional(true)) << miss.missing;
  EXPECT_EQ(miss.counters.at("prefix_lookups"), 2);
  EXPECT_FALSE(miss.counters.contains("prefix_tokens"));
}

TEST(RequestOfAnArm, SharesTheBeginningOfPromptsInABatchThatServes) {
  const Probe served =
      asked("causal,+concatenate-filter,+copied-prefix@prefix=0.5")->probe(request_cell(Phase::batching));
  EXPECT_EQ(served.engaged, std::optional(true)) << served.missing;
  EXPECT_GT(served.counters.at("prefix_tokens"), 0);
}

TEST(RequestOfAnArm, DecodesSeveralSamplesOfEachPrompt) {
  const CellRecord cell = request_cell(Phase::prefill);
  const std::unique_ptr<Worker> worker = asked("causal,+copied-fork@samples=3");
  const Probe probe = worker->probe(cell);
  EXPECT_EQ(probe.engaged, std::optional(true)) << probe.missing;
  EXPECT_EQ(probe.counters.at("forked_rows"), 6);
  EXPECT_EQ(worker->outputs(cell, 2, nullptr).batch, 6);
}

TEST(RequestOfAnArm, ChoosesOnlyWhatItsPatternAllows) {
  const auto vocabulary = three_letters();
  for (const Phase phase : {Phase::prefill, Phase::decode, Phase::generate}) {
    const CellRecord cell = request_cell(phase);
    const OutputTrace expected = asked("causal@regex=[ab]*", vocabulary)->outputs(cell, 6, nullptr);
    for (const auto& step : expected.tokens) {
      for (const std::int64_t id : step) {
        EXPECT_TRUE(id != 0 && id % 3 != 2) << to_string(phase) << " chose " << id;
      }
    }
    for (const char* arm : {"causal,+trie-masks@regex=[ab]*", "causal,+cached-trie-masks@regex=[ab]*",
                            "causal,+index-masks@regex=[ab]*"}) {
      const std::unique_ptr<Worker> worker = asked(arm, vocabulary);
      const VerificationResult same = compare_free_running(expected, worker->outputs(cell, 6, nullptr));
      EXPECT_TRUE(same.correct) << arm << ": " << same.difference;
      if (cell.phase != Phase::generate) {
        const Probe probe = worker->probe(cell);
        EXPECT_EQ(probe.engaged, std::optional(true)) << arm << ' ' << to_string(phase) << ": " << probe.missing;
      }
    }
  }
}

TEST(RequestOfAnArm, IsComparedByWhatThePatternAllowsWhereTokensAreFed) {
  const auto vocabulary = three_letters();
  const CellRecord cell = request_cell(Phase::decode);
  const OutputTrace expected = asked("causal@regex=[ab]*", vocabulary)->outputs(cell, 6, nullptr);
  const OutputTrace right = asked("bigcode@regex=[ab]*", vocabulary)->outputs(cell, 6, &expected);
  EXPECT_TRUE(compare_teacher_forced(expected, right, "bf16").correct);
  const OutputTrace without = asked("bigcode")->outputs(cell, 6, &expected);
  EXPECT_FALSE(compare_teacher_forced(expected, without, "bf16").correct) << "an arm without the masks is found out";
}

TEST(RequestOfAnArm, SaysWhereAPatternCannotGoOn) {
  try {
    asked("causal@regex=abc", three_letters())->outputs(request_cell(Phase::decode), 6, nullptr);
    FAIL() << "three letters are not six";
  } catch (const WorkerError& error) {
    EXPECT_EQ(error.status, RowStatus::unsupported);
    EXPECT_NE(std::string(error.what()).find("leaves a row no token"), std::string::npos) << error.what();
  }
  try {
    asked("causal@regex=abc");
    FAIL() << "there is no vocabulary";
  } catch (const WorkerError& error) {
    EXPECT_EQ(error.status, RowStatus::unsupported);
  }
}

TEST(OutputMasks, LowerWhatIsForbiddenBelowAllThatIsAllowed) {
  const auto vocabulary =
      std::make_shared<const MaskVocabulary>(std::vector<std::string>{"a", "b", "c"}, std::vector<std::int64_t>{});
  OutputMasks masks({.regex = "a[bc]"}, vocabulary, 1, 3);
  std::vector<float> logits{-4, 2, 1};
  masks.lower_forbidden(logits);
  EXPECT_EQ(logits, (std::vector<float>{-4, -8, -8}));
  const std::vector<std::int64_t> chosen{0};
  masks.take(chosen);
  logits = {5, 2, 1};
  masks.lower_forbidden(logits);
  EXPECT_EQ(logits, (std::vector<float>{-4, 2, 1}));
}

}  // namespace
}  // namespace decodelab
