// Qwen 3: Llama's structure with a norm over each head's queries and keys, and heads of 128 whatever the model's width.
// Keys, defaults and names are those of Hugging Face's Qwen3Config and Qwen3ForCausalLM.
#include <nlohmann/json.hpp>

#include "engine/families/llama.h"

namespace decodelab::model_families {
namespace {

constexpr LlamaDefaults kQwen3Defaults{
    .vocabulary_size = 151936, .intermediate_size = 22016, .head_dim = 128, .positions = 32768, .eos_token_id = 151643};

void read_qwen3(const ConfigKeys& keys, ModelConfig& config) {
  read_llama_keys(keys, kQwen3Defaults, config);
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias", false);
  config.qk_norm = true;
  read_window_of_later_layers(keys, config);
}

void write_qwen3(const ModelConfig& config, nlohmann::ordered_json& object) {
  object["architectures"] = {"Qwen3ForCausalLM"};
  write_llama_keys(config, object);
  object["attention_bias"] = config.qkv_bias;
}

/// Qwen/Qwen3-0.6B as on the hub.
std::vector<SyntheticModel> synthetic_qwen3() {
  ModelConfig config = llama_config({.vocabulary_size = 151936,
                                     .hidden_size = 1024,
                                     .intermediate_size = 3072,
                                     .layers = 28,
                                     .heads = 16,
                                     .kv_heads = 8,
                                     .head_dim = 128,
                                     .positions = 40960,
                                     .tied_head = true,
                                     .eos_token_id = 151645},
                                    {.theta = 1000000, .dims = 128}, 1e-6);
  config.family = "qwen3";
  config.qk_norm = true;
  return {{.name = "qwen3-0.6b", .config = std::move(config)}};
}

}  // namespace

const Family& qwen3() {
  static constexpr GgufNames kGguf{
      .architecture = "qwen3", .config = gguf_config_of_llama, .stored_name = stored_name_of_llama};
  static constexpr Family kFamily{.model_type = "qwen3",
                                  .prefix = "model.",
                                  .read = read_qwen3,
                                  .write = write_qwen3,
                                  .roles = roles_of_llama,
                                  .ignores = is_table_of_llama,
                                  .synthetic = synthetic_qwen3,
                                  .gguf = &kGguf};
  return kFamily;
}

}  // namespace decodelab::model_families
