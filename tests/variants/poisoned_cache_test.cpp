// Requests that join and leave while what lies past every row's length is as large as it may be.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "engine/batching.h"
#include "engine/layers/plane_cache.h"
#include "engine/layers/step_rows.h"
#include "tests/variants/arms.h"

namespace decodelab {
namespace {

using testing::small_model;

/// Fills every slot past the tokens of each row with large finite numbers, in every layer of every step. What was moved
/// there by rows that joined, left or were cut is overwritten too.
class PoisonedCache final : public PlaneCache {
 public:
  using PlaneCache::PlaneCache;

 protected:
  void store(KvStorage& storage, const at::Tensor& key_value, const StepRows& rows, std::int64_t slots) override {
    if (slots > storage.slots()) {
      storage.reallocate(no_slots(rows.batch_size()), capacity(slots), storage.slots());
    }
    storage.write(key_value, rows);
    constexpr double kPoison = 1e4;
    const KeysValues all = storage.view(storage.slots(), storage.rows());
    for (std::int64_t row = 0; row < rows.batch_size(); ++row) {
      const auto place = static_cast<std::size_t>(row);
      const std::int64_t held = rows.past()[place] + rows.added()[place];
      for (const at::Tensor& plane : {all.keys, all.values}) {
        plane.select(0, row).narrow(0, held, storage.slots() - held).fill_(kPoison);
      }
    }
  }
  std::int64_t capacity(std::int64_t needed) const override {
    const std::int64_t multiple = options().key_multiple;
    constexpr std::int64_t kMore = 9;
    return (needed + kMore + multiple - 1) / multiple * multiple;
  }
};

/// The arm's plan on such a cache; the arm brings no growth rule of its own.
Engine poisoned_engine(const std::string& arm, std::shared_ptr<const Model> model) {
  EnginePlan plan = reference_plan();
  plan.kv_growth.set_reference([](const KvCacheOptions& options) { return std::make_unique<PoisonedCache>(options); });
  return Engine(std::move(model), bind_arm(parse_arm(arm), plan));
}

std::vector<BatchRequest> requests_of_many_lengths() {
  std::vector<BatchRequest> requests;
  for (std::int64_t index = 0; index < 14; ++index) {
    BatchRequest request{.max_tokens = 1 + index * 5 % 8};
    for (std::int64_t token = 0; token < 1 + index * 7 % 19; ++token) {
      request.prompt.push_back(1 + (index * 31 + token * 17) % 96);
    }
    request.samples = 1 + index % 3;
    if (index % 2 == 0) {
      request.sampling = {.sample = true, .temperature = 1.5, .seed = static_cast<std::uint64_t>(index)};
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

std::map<std::int64_t, std::vector<std::vector<std::int64_t>>> served(const Engine& engine, std::int64_t chunk,
                                                                      std::int64_t rows) {
  ContinuousBatch batch(engine, {.max_rows = rows, .prefill_chunk = chunk, .eos_token_ids = {0}});
  for (BatchRequest& request : requests_of_many_lengths()) {
    batch.submit(std::move(request));
  }
  std::map<std::int64_t, std::vector<std::vector<std::int64_t>>> all;
  while (!batch.idle()) {
    for (const FinishedRequest& finished : batch.step()) {
      for (const Completion& sample : finished.samples) {
        all[finished.id].push_back(sample.token_ids);
      }
    }
  }
  return all;
}

TEST(PoisonedCache, MovesNoTokenOfAnyRequestUnderAnyRuleOrPreset) {
  int ran = 0;
  for (const ModelConfig& config : {testing::small_config(), testing::small_llama_config(),
                                    testing::small_gemma_config(), testing::small_t5_config()}) {
    const auto model = small_model(config);
    // Every request by itself.
    const auto expected = served(testing::engine_for("causal", model), 0, 3);
    for (const char* arm :
         {"causal,+concatenate-filter", "causal,+padded-batch,+copied-fork", "causal,+slot-batch",
          "vector,+concatenate-filter", "flash,+slot-batch", "bigcode3,-kv-grow,+concatenate-filter:steps=2",
          "native,-kv-preallocated", "native,-kv-preallocated,-concatenate-filter,+slot-batch"}) {
      if (!unsupported_reason(parse_arm(arm), {.config = config, .dtype = ElementType::float32, .device = "cpu"})
               .empty()) {
        continue;
      }
      const Engine engine = poisoned_engine(arm, model);
      for (const std::int64_t chunk : {0, 5}) {
        EXPECT_EQ(served(engine, chunk, 5), expected) << config.family << ", " << arm << ", chunks of " << chunk;
        ++ran;
      }
    }
  }
  EXPECT_GT(ran, 40) << "most arms run with every family";
}

}  // namespace
}  // namespace decodelab
