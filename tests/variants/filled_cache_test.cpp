// A cache that is filled with a copy goes on as the one that was copied, under every way of keeping keys and values.
#include <gtest/gtest.h>

#include "tests/variants/arms.h"

namespace decodelab {
namespace {

using testing::engine_for;
using testing::small_config;
using testing::small_model;

const std::vector<std::vector<std::int64_t>> kPrompts{{5, 17, 96, 3, 22}, {1, 2, 3, 4, 9}, {7, 7, 8, 8, 9}};
constexpr int kFilledSteps = 12;  // more than a block of a growing cache

SessionOptions options() { return {.batch_size = 3, .max_tokens = 30, .details = {}}; }

/// Logits of all steps from here on.
std::vector<std::vector<float>> decoded(Session& session, const std::vector<std::int64_t>& first) {
  session.force_tokens(first);
  std::vector<std::vector<float>> logits;
  for (int step = 0; step < kFilledSteps; ++step) {
    session.decode();
    logits.push_back(session.last_logits());
  }
  return logits;
}

TEST(FilledCache, GoesOnAsTheOneThatWasCopiedAndMayBeRestoredAgain) {
  for (const bool multi_query : {true, false}) {
    const auto model = small_model(small_config(multi_query));
    for (const char* arm :
         {"causal", "causal,+merged-kv", "causal,+kv-grow:tokens=8", "causal,+kv-static", "bigcode3", "native"}) {
      const Engine engine = engine_for(arm, model);
      Session prefilled(engine, options());
      const std::vector<std::int64_t> first = prefilled.prefill(kPrompts).token_ids;
      const FilledCache copy = prefilled.filled();
      EXPECT_EQ(copy.bytes(), small_config(multi_query).layers * 3 * 5 * small_config(multi_query).kv_width() * 4);
      const auto expected = decoded(prefilled, first);
      for (int time = 0; time < 2; ++time) {
        Session restored(engine, options());
        restored.fill(copy);
        EXPECT_EQ(restored.lengths(), (std::vector<std::int64_t>{5, 5, 5}));
        EXPECT_EQ(decoded(restored, first), expected) << arm << ", time " << time;
        restored.truncate(2);  // which clears what a cache that kept the copy itself would share with it
      }
    }
  }
}

TEST(FilledCache, HoldsThePromptsThatAnEncoderRead) {
  const auto model = small_model(testing::small_t5_config());
  for (const char* arm : {"causal", "causal,+kv-grow:tokens=8", "native"}) {
    const Engine engine = engine_for(arm, model);
    Session prefilled(engine, options());
    const std::vector<std::int64_t> first = prefilled.prefill(kPrompts).token_ids;
    const FilledCache copy = FilledCache::from_bytes(prefilled.filled().to_bytes(), engine);
    const auto expected = decoded(prefilled, first);
    Session restored(engine, options());
    restored.fill(copy);
    EXPECT_EQ(restored.lengths(), (std::vector<std::int64_t>{1, 1, 1}));
    EXPECT_EQ(decoded(restored, first), expected) << arm;
  }
}

TEST(FilledCache, GoesThroughASafetensorsFileUnchanged) {
  const testing::TemporaryFolder folder;
  const auto tokens_after = [](Session session) {
    std::vector<std::vector<std::int64_t>> steps;
    session.extend(kPrompts);
    steps.push_back(session.choose().token_ids);
    for (int step = 0; step < 4; ++step) {
      steps.push_back(session.decode().token_ids);
    }
    return steps;
  };
  for (const ElementType dtype : {ElementType::float32, ElementType::bfloat16}) {
    const Engine engine = engine_for("native", small_model(testing::small_llama_config(), dtype));
    Session one(engine, {.batch_size = 1, .max_tokens = 30, .details = {}});
    one.extend(std::vector<std::vector<std::int64_t>>{{9, 8, 7, 6}});
    one.filled().to_file(folder / "prefix.safetensors", engine);

    Session prefixed(engine, options());
    prefixed.fill(FilledCache::from_file(folder / "prefix.safetensors", engine, 3));
    Session forked(engine, {.batch_size = 1, .max_tokens = 30, .details = {}});
    forked.extend(std::vector<std::vector<std::int64_t>>{{9, 8, 7, 6}});
    forked.fork(std::vector<std::int64_t>{0, 0, 0});
    EXPECT_EQ(tokens_after(std::move(prefixed)), tokens_after(std::move(forked))) << "one prefix serves all rows";

    const Engine wider = engine_for("native", small_model(small_config(false), dtype));
    EXPECT_THROW(FilledCache::from_file(folder / "prefix.safetensors", wider, 1), std::invalid_argument);
    Session two(engine, {.batch_size = 2, .max_tokens = 30, .details = {}});
    two.extend(std::vector<std::vector<std::int64_t>>{{1, 2}, {3, 4}});
    two.filled().to_file(folder / "two.safetensors", engine);
    EXPECT_THROW(FilledCache::from_file(folder / "two.safetensors", engine, 3), std::invalid_argument);
    EXPECT_THROW(FilledCache::from_file(folder / "none.safetensors", engine, 1), std::exception);
  }
}

TEST(FilledCache, OfRandomNumbersIsTheSameAsFillingWithThem) {
  const Engine engine = engine_for("causal,+kv-grow:tokens=8", small_model(small_config()));
  Session filled(engine, options());
  filled.fill_random(9, 4);
  const FilledCache copy = filled.filled();
  Session restored(engine, options());
  restored.fill(copy);
  EXPECT_EQ(restored.cache_bytes(), filled.cache_bytes()) << "the growth rule is the cache's own";
  EXPECT_EQ(decoded(restored, {1, 2, 3}), decoded(filled, {1, 2, 3}));
}

TEST(FilledCache, GoesOnTheSameAfterItWasKeptAsBytes) {
  for (const ElementType dtype : {ElementType::float32, ElementType::bfloat16}) {
    const auto model = small_model(small_config(), dtype);
    const Engine engine = engine_for("bigcode", model);
    Session prefilled(engine, options());
    const std::vector<std::int64_t> first = prefilled.prefill(kPrompts).token_ids;
    const std::vector<std::byte> bytes = prefilled.filled().to_bytes();
    Session restored(engine, options());
    restored.fill(FilledCache::from_bytes(bytes, engine));
    EXPECT_EQ(decoded(restored, first), decoded(prefilled, first));

    EXPECT_THROW(FilledCache::from_bytes(std::span(bytes).first(bytes.size() - 1), engine), std::invalid_argument);
    EXPECT_THROW(FilledCache::from_bytes({}, engine), std::invalid_argument);
    const Engine other = engine_for("bigcode", small_model(small_config(false), dtype));
    EXPECT_THROW(FilledCache::from_bytes(bytes, other), std::invalid_argument);
  }
}

TEST(FilledCache, RefusesRowsThatDifferInLengthAndAnotherBatch) {
  const Engine engine = engine_for("causal", small_model(small_config()));
  Session ragged(engine, options());
  EXPECT_THROW(ragged.filled(), std::logic_error) << "nothing is held yet";
  ragged.prefill(std::vector<std::vector<std::int64_t>>{{1, 2, 3}, {4}, {5, 6}});
  EXPECT_THROW(ragged.filled(), std::logic_error);
  Session other(engine, options());
  other.fill_random(4, 1);
  const FilledCache copy = other.filled();
  Session smaller(engine, {.batch_size = 2, .max_tokens = 30, .details = {}});
  EXPECT_THROW(smaller.fill(copy), std::invalid_argument);
}

}  // namespace
}  // namespace decodelab
