// Further heads guess, from files that this test writes.
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/measure/engine_worker.h"
#include "engine/batching.h"
#include "tests/temporary_folder.h"
#include "tests/variants/arms.h"
#include "variants/presets.h"

namespace decodelab {
namespace {

using testing::engine_for;
using testing::ragged_prompts;
using testing::small_config;
using testing::small_gemma_config;
using testing::small_llama_config;
using testing::small_model;
using testing::small_t5_config;

constexpr std::int64_t kHeads = 3;
constexpr std::int64_t kTokens = 24;

/// What a file of heads is written with.
struct HeadsToWrite {
  float width = 0;        ///< Weights are random within this; 0: each head says what the model's own says.
  bool own_head = false;  ///< Each head has a matrix of its own behind its block.
  std::int64_t hidden_size = 48;
  std::string left_out{};  ///< The name of a tensor that is not there.
};

void write_heads(const std::filesystem::path& folder, const HeadsToWrite& wanted) {
  std::ofstream(folder / "config.json") << "{\"medusa_num_heads\": 3, \"medusa_num_layers\": 1}";
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (std::int64_t head = 0; head < kHeads; ++head) {
    const std::string name = std::to_string(head);
    shapes[name + ".0.linear.weight"] = {wanted.hidden_size, wanted.hidden_size};
    shapes[name + ".0.linear.bias"] = {wanted.hidden_size};
    if (wanted.own_head) {
      shapes[name + ".1.weight"] = {97, wanted.hidden_size};
    }
  }
  shapes.erase(wanted.left_out);
  std::map<std::string, std::vector<float>> values;
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, shape] : shapes) {
    std::vector<float>& of = values[name];
    of.resize(static_cast<std::size_t>(shape.size() == 1 ? shape[0] : shape[0] * shape[1]));
    fill_synthetic(of, 3, name, 0, 0, wanted.width);
    tensors.push_back({.name = name,
                       .type = ElementType::float32,
                       .shape = shape,
                       .data = std::as_bytes(std::span<const float>(of))});
  }
  write_safetensors(folder / "medusa_lm_head.safetensors", tensors);
}

std::vector<std::vector<std::int64_t>> tokens_said(const std::vector<Completion>& completions) {
  std::vector<std::vector<std::int64_t>> tokens;
  for (const Completion& completion : completions) {
    tokens.push_back(completion.token_ids);
  }
  return tokens;
}

TEST(MedusaHeads, ChangeNoTokenUnderEveryPresetAndFamilyInEveryBatch) {
  const testing::TemporaryFolder folder;
  for (const bool own_head : {false, true}) {
    write_heads(folder.path(), {.width = 0.3f, .own_head = own_head});
    const std::string heads = ",+medusa-heads:folder=" + folder.path().string();
    for (const ModelConfig& config :
         {small_config(), small_config(false), small_llama_config(), small_gemma_config()}) {
      const auto model = small_model(config);
      for (const std::size_t batch : {1u, 2u, 4u}) {
        std::vector<std::vector<std::int64_t>> prompts = ragged_prompts();
        prompts.resize(batch);
        const GenerationRequest request{.prompts = prompts, .max_tokens = kTokens};
        const auto expected = tokens_said(generate(engine_for("causal", model), request));
        for (const Preset& preset : presets()) {
          const std::string arm = preset.name + heads;
          if (!bind_preset(preset.name, EnginePlan{}).proposer.variant().empty() ||
              !unsupported_reason(parse_arm(arm), {.config = config, .dtype = model->dtype(), .device = "cpu"})
                   .empty()) {
            continue;
          }
          const std::vector<Completion> got = generate(engine_for(arm, model), request);
          EXPECT_EQ(tokens_said(got), expected) << config.family << ", " << arm << ", batch " << batch;
          EXPECT_GT(got[0].proposed, 0) << arm;
        }
      }
    }
  }
}

TEST(MedusaHeads, GuessTheNextTokenAgainWhereTheyAddNothing) {
  const testing::TemporaryFolder folder;
  write_heads(folder.path(), {});
  const auto model = small_model(small_config());
  const Engine engine = engine_for("causal,+medusa-heads:folder=" + folder.path().string(), model);
  Session session(engine, {.batch_size = 4, .max_tokens = 40, .details = {}});
  const std::vector<std::int64_t> next = session.prefill(ragged_prompts()).token_ids;
  const std::vector<RowRun> runs = session.speculate(std::vector<std::int64_t>{0, 1, 2, 9});
  const auto plain = generate(engine_for("causal", model), {.prompts = ragged_prompts(), .max_tokens = 8});
  for (std::size_t row = 0; row < runs.size(); ++row) {
    EXPECT_EQ(runs[row].proposed, std::min<std::int64_t>(static_cast<std::int64_t>(row), kHeads));
    std::int64_t repeated = 0;
    while (repeated < runs[row].proposed && plain[row].token_ids[static_cast<std::size_t>(1 + repeated)] == next[row]) {
      ++repeated;
    }
    EXPECT_EQ(runs[row].accepted, repeated) << row;
  }
}

TEST(MedusaHeads, FollowRowsThatComeAndGo) {
  const testing::TemporaryFolder folder;
  write_heads(folder.path(), {});
  const auto model = small_model(small_config());
  const Engine engine = engine_for("native,+medusa-heads:folder=" + folder.path().string(), model);
  ContinuousBatch batch(engine, {.max_rows = 2});
  std::map<std::int64_t, std::vector<std::int64_t>> got;
  for (std::int64_t request = 0; request < 5; ++request) {
    batch.submit({.prompt = {request + 3, 7, 11}, .max_tokens = 4 + 3 * request});
  }
  while (!batch.idle()) {
    for (const FinishedRequest& finished : batch.step()) {
      got[finished.id] = finished.samples.front().token_ids;
    }
  }
  for (std::int64_t request = 0; request < 5; ++request) {
    const GenerationRequest alone{.prompts = {{request + 3, 7, 11}}, .max_tokens = 4 + 3 * request};
    EXPECT_EQ(got.at(request), tokens_said(generate(engine_for("causal", model), alone))[0]) << request;
  }
}

TEST(MedusaHeads, AreProvedByTheRoundsOfAContinuation) {
  const testing::TemporaryFolder folder;
  write_heads(folder.path(), {});
  const std::string arm = "native,+medusa-heads:folder=" + folder.path().string();
  const auto engine =
      std::make_shared<const Engine>(small_model(small_config()), bind_arm(parse_arm(arm), reference_plan()));
  const CellRecord cell{.phase = Phase::continuation,
                        .batch = 2,
                        .length = 9,
                        .dtype = "fp32",
                        .device = "cpu",
                        .threads = 1,
                        .scope = "continue",
                        .fill = "generated"};
  const Probe counted = make_engine_worker(engine, parse_arm(arm), {})->probe(cell);
  EXPECT_EQ(counted.engaged, std::optional(true)) << counted.missing;
  EXPECT_GT(counted.counters.at("proposed_tokens"), 0);
}

std::string refusal_of_heads(const std::string& folder) {
  try {
    const Engine engine = engine_for("causal,+medusa-heads:folder=" + folder, small_model(small_config()));
    const Session session(engine, {.batch_size = 1, .max_tokens = 8, .details = {}});
    return "accepted";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

TEST(MedusaHeads, AreRefusedWithTheirFileAndWhatWasExpected) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path().string();
  EXPECT_NE(refusal_of_heads("no/such/folder").find("no/such/folder/config.json"), std::string::npos);
  write_heads(folder.path(), {.hidden_size = 32});
  EXPECT_NE(refusal_of_heads(path).find("[32, 32], and the model asks for [48, 48]"), std::string::npos)
      << refusal_of_heads(path);
  write_heads(folder.path(), {.left_out = "2.0.linear.weight"});
  EXPECT_NE(refusal_of_heads(path).find("no tensor 2.0.linear.weight"), std::string::npos) << refusal_of_heads(path);
  write_heads(folder.path(), {.left_out = "2.0.linear.bias"});
  EXPECT_EQ(refusal_of_heads(path), "accepted");
  for (const char* config : {"{}", "{\"medusa_num_heads\": 3}", "{\"medusa_num_heads\": 0, \"medusa_num_layers\": 1}",
                             "{\"medusa_num_heads\": \"3\", \"medusa_num_layers\": 1}", "[]"}) {
    std::ofstream(folder.path() / "config.json") << config;
    EXPECT_NE(refusal_of_heads(path).find("config.json"), std::string::npos) << config;
  }
  for (const auto& [arm, config] : {std::pair("causal,+medusa-heads", small_config()),
                                    std::pair("causal,+medusa-heads:folder=x", small_t5_config())}) {
    EXPECT_NE(unsupported_reason(parse_arm(arm), {.config = config, .dtype = ElementType::float32, .device = "cpu"}),
              "");
  }
}

}  // namespace
}  // namespace decodelab
