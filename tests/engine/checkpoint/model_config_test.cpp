// Tests of reading config.json: real models, transformers' defaults and aliases, and every key that is refused.
#include "engine/checkpoint/model_config.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "tests/engine/checkpoint/refusal.h"
#include "tests/temporary_folder.h"

namespace decodelab {
namespace {

constexpr const char* kSantacoder =
    R"({"activation_function": "gelu_pytorch_tanh", "architectures": ["GPTBigCodeForCausalLM"],
  "attention_softmax_in_fp32": true, "multi_query": true, "attn_pdrop": 0.1, "bos_token_id": 49152, "embd_pdrop": 0.1,
  "eos_token_id": 49152, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt_bigcode", "n_embd": 2048,
  "n_head": 16, "n_inner": 8192, "n_layer": 24, "n_positions": 2048, "resid_pdrop": 0.1, "scale_attention_softmax_in_fp32": true,
  "scale_attn_weights": true, "use_cache": true, "vocab_size": 49280})";

ModelConfig with(const std::string& keys) {
  return parse_model_config(R"({"model_type":"gpt_bigcode")" + keys + "}", "config.json");
}

std::string refused(const std::string& keys) {
  return refusal([&] { with(keys); });
}

TEST(ModelConfig, ReadsSantacoder) {
  const ModelConfig config = parse_model_config(kSantacoder, "config.json");
  EXPECT_EQ(config.family, "gpt_bigcode");
  EXPECT_EQ(config.layers, 24);
  EXPECT_EQ(config.head_dim, 128);
  EXPECT_EQ(config.kv_heads, 1);
  EXPECT_EQ(config.kv_width(), 256);
  EXPECT_EQ(config.eos_token_id, 49152);
  EXPECT_EQ(parameter_count(config), 1'124'886'528);
}

TEST(ModelConfig, HasTheDefaultsOfTransformers) {
  const ModelConfig config = with("");
  EXPECT_EQ(config.layers, 12);
  EXPECT_EQ(config.hidden_size, 768);
  EXPECT_EQ(config.heads, 12);
  EXPECT_EQ(config.intermediate_size, 3072);
  EXPECT_EQ(config.positions, 1024);
  EXPECT_EQ(config.vocabulary_size, 50257);
  EXPECT_EQ(config.kv_heads, 1);
  EXPECT_EQ(config.activation, Activation::gelu_tanh);
  EXPECT_DOUBLE_EQ(config.norm_epsilon, 1e-5);
  EXPECT_TRUE(config.scale_attention_weights);
  EXPECT_TRUE(config.attention_softmax_in_fp32);
  EXPECT_TRUE(config.scale_attention_softmax_in_fp32);
  EXPECT_EQ(config.eos_token_id, 50256);
}

TEST(ModelConfig, TakesTheAliasesOfTransformers) {
  const ModelConfig config =
      with(R"(,"hidden_size":64,"num_hidden_layers":3,"num_attention_heads":4,"max_position_embeddings":128)");
  EXPECT_EQ(config.hidden_size, 64);
  EXPECT_EQ(config.layers, 3);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.positions, 128);
  EXPECT_EQ(config.intermediate_size, 256);
  EXPECT_NE(refused(R"(,"hidden_size":64,"n_embd":128)"), "");
}

TEST(ModelConfig, ReadsEveryFlag) {
  const ModelConfig config = with(
      R"(,"multi_query":false,"scale_attn_weights":false,"attention_softmax_in_fp32":false,"scale_attention_softmax_in_fp32":false)");
  EXPECT_EQ(config.kv_heads, 12);
  EXPECT_FALSE(config.scale_attention_weights);
  EXPECT_FALSE(config.attention_softmax_in_fp32);
  EXPECT_FALSE(config.scale_attention_softmax_in_fp32);
}

TEST(ModelConfig, MapsTheNamesOfGelu) {
  for (const char* name : {"gelu_pytorch_tanh", "gelu_new", "gelu_fast"}) {
    EXPECT_EQ(with(std::string(R"(,"activation_function":")") + name + "\"").activation, Activation::gelu_tanh) << name;
  }
  for (const char* name : {"gelu", "gelu_python"}) {
    EXPECT_EQ(with(std::string(R"(,"activation_function":")") + name + "\"").activation, Activation::gelu_erf) << name;
  }
  EXPECT_NE(refused(R"(,"activation_function":"mish")").find("gelu_pytorch_tanh"), std::string::npos);
}

TEST(ModelConfig, TakesEosAsANumberAListOrNone) {
  EXPECT_EQ(with(R"(,"eos_token_id":7)").eos_token_id, 7);
  EXPECT_EQ(with(R"(,"eos_token_id":[7,9])").eos_token_id, 7);
  EXPECT_EQ(with(R"(,"eos_token_id":[7,9,99999999])").eos_token_ids(), (std::vector<std::int64_t>{7, 9}));
  EXPECT_EQ(parse_model_config(config_json(with(R"(,"eos_token_id":[7,9])")), "again").eos_token_ids(),
            (std::vector<std::int64_t>{7, 9}));
  EXPECT_NE(refused(R"(,"eos_token_id":[7,"x"])"), "");
  EXPECT_EQ(with(R"(,"eos_token_id":[])").eos_token_id, -1);
  EXPECT_EQ(with(R"(,"eos_token_id":null)").eos_token_id, -1);
  EXPECT_EQ(with(R"(,"vocab_size":100)").eos_token_id, -1);
  EXPECT_EQ(with(R"(,"vocab_size":100,"eos_token_id":100)").eos_token_id, -1);
  EXPECT_NE(refused(R"(,"eos_token_id":"</s>")"), "");
  EXPECT_NE(refused(R"(,"eos_token_id":1.5)"), "");
  EXPECT_NE(refused(R"(,"eos_token_id":[-2])"), "");
}

TEST(ModelConfig, RefusesDimensionsThatMakeNoModel) {
  for (const char* key : {"n_layer", "n_embd", "n_head", "n_inner", "n_positions", "vocab_size"}) {
    for (const char* value :
         {"0", "-1", "1.5", "\"8\"", "true", "9223372036854775807", "18446744073709551615", "1e30", "[]"}) {
      const std::string message = refused(std::string(",\"") + key + "\":" + value);
      EXPECT_NE(message.find(key), std::string::npos) << key << " = " << value << ": " << message;
      EXPECT_NE(message.find("config.json"), std::string::npos) << message;
    }
  }
  EXPECT_NE(refused(R"(,"n_embd":100,"n_head":16)").find("n_head"), std::string::npos);
}

TEST(ModelConfig, RefusesWhatTheEngineWouldComputeOtherwise) {
  EXPECT_NE(refused(R"(,"add_cross_attention":true)"), "");
  EXPECT_NE(refused(R"(,"tie_word_embeddings":false)"), "");
  EXPECT_NE(refused(R"(,"quantization_config":{"bits":4})"), "");
  EXPECT_NE(refused(R"(,"multi_query":1)"), "");
  for (const char* value : {"0", "-1", "1", "\"x\"", "null"}) {
    EXPECT_NE(refused(std::string(R"(,"layer_norm_epsilon":)") + value), "") << value;
  }
}

TEST(ModelConfig, NamesTheFamiliesItSupports) {
  const std::string message = refusal([] { parse_model_config(R"({"model_type":"mamba"})", "config.json"); });
  EXPECT_NE(message.find("mamba"), std::string::npos) << message;
  EXPECT_NE(message.find("llama"), std::string::npos) << message;
  EXPECT_NE(message.find("gpt_bigcode"), std::string::npos) << message;
  for (const char* text : {"", "{", "[]", "7", "{}", R"({"model_type":7})",
                           R"({"model_type":"gpt_bigcode","n_layer":1,"n_layer":2})", "{\"\xff\":1}"}) {
    EXPECT_NE(refusal([&] { parse_model_config(text, "config.json"); }), "") << text;
  }
}

TEST(ModelConfig, ListsTheWeightsInFileOrder) {
  const ModelConfig config =
      with(R"(,"n_layer":2,"n_embd":8,"n_head":2,"n_positions":16,"vocab_size":10,"multi_query":true)");
  const auto weights = weight_specs(config);
  ASSERT_EQ(weights.size(), 2u + 2 * 12 + 2);
  EXPECT_EQ(weights[0].name, "transformer.wte.weight");
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const WeightSpec& weight : weights) {
    shapes[weight.name] = weight.shape;
  }
  using Dimensions = std::vector<std::int64_t>;
  EXPECT_EQ(shapes.at("transformer.wpe.weight"), (Dimensions{16, 8}));
  EXPECT_EQ(shapes.at("transformer.h.1.attn.c_attn.weight"), (Dimensions{16, 8}));
  EXPECT_EQ(shapes.at("transformer.h.1.attn.c_attn.bias"), (Dimensions{16}));
  EXPECT_EQ(shapes.at("transformer.h.1.mlp.c_fc.weight"), (Dimensions{32, 8}));
  EXPECT_EQ(shapes.at("transformer.h.1.mlp.c_proj.weight"), (Dimensions{8, 32}));
  EXPECT_EQ(shapes.at("transformer.h.1.mlp.c_proj.bias"), (Dimensions{8}));
  EXPECT_EQ(shapes.at("transformer.ln_f.bias"), (Dimensions{8}));
}

TEST(ModelConfig, GivesEveryHeadItsKeysWithoutMultiQuery) {
  const ModelConfig config = with(R"(,"n_layer":1,"n_embd":8,"n_head":2,"multi_query":false)");
  EXPECT_EQ(config.kv_width(), 16);
  for (const WeightSpec& weight : weight_specs(config)) {
    if (weight.name == "transformer.h.0.attn.c_attn.weight") {
      EXPECT_EQ(weight.shape, (std::vector<std::int64_t>{24, 8}));
    }
  }
}

TEST(ModelConfig, WritesWhatItReads) {
  ModelConfig config = with(
      R"(,"n_layer":3,"n_head":4,"n_inner":100,"activation_function":"gelu","layer_norm_epsilon":1e-6,"eos_token_id":null,)"
      R"("multi_query":false,"scale_attn_weights":false,"attention_softmax_in_fp32":false)");
  const ModelConfig again = parse_model_config(config_json(config), "config.json");
  EXPECT_EQ(config_json(again), config_json(config));
  EXPECT_EQ(again.kv_heads, 4);
  EXPECT_EQ(again.activation, Activation::gelu_erf);
  EXPECT_EQ(again.eos_token_id, -1);
  EXPECT_EQ(again.norm_epsilon, 1e-6);
  EXPECT_FALSE(again.scale_attention_weights);
}

TEST(ModelConfig, LoadsTheFileOfADirectory) {
  const testing::TemporaryFolder directory;
  EXPECT_NE(refusal([&] { load_model_config(directory.path()); }).find("config.json"), std::string::npos);
  directory.write("config.json", kSantacoder);
  EXPECT_EQ(load_model_config(directory.path()).layers, 24);
}

}  // namespace
}  // namespace decodelab
