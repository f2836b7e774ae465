// Qwen 2 and 2.5: Llama's structure with biases of query, key and value. Keys, defaults and names are those of Hugging
// Face's Qwen2Config and Qwen2ForCausalLM.
#include <nlohmann/json.hpp>

#include "engine/families/llama.h"

namespace decodelab::model_families {
namespace {

constexpr LlamaDefaults kQwen2Defaults{
    .vocabulary_size = 151936, .intermediate_size = 22016, .positions = 32768, .eos_token_id = 151643};

void read_qwen2(const ConfigKeys& keys, ModelConfig& config) {
  read_llama_keys(keys, kQwen2Defaults, config);
  config.qkv_bias = true;
  read_window_of_later_layers(keys, config);
}

void write_qwen2(const ModelConfig& config, nlohmann::ordered_json& object) {
  object["architectures"] = {"Qwen2ForCausalLM"};
  write_llama_keys(config, object);
}

std::vector<SyntheticModel> synthetic_qwen2() { return {}; }

}  // namespace

const Family& qwen2() {
  static constexpr GgufNames kGguf{
      .architecture = "qwen2", .config = gguf_config_of_llama, .stored_name = stored_name_of_llama};
  static constexpr Family kFamily{.model_type = "qwen2",
                                  .prefix = "model.",
                                  .read = read_qwen2,
                                  .write = write_qwen2,
                                  .roles = roles_of_llama,
                                  .ignores = is_table_of_llama,
                                  .synthetic = synthetic_qwen2,
                                  .gguf = &kGguf};
  return kFamily;
}

}  // namespace decodelab::model_families
