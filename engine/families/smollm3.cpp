// SmolLM3: Llama's structure where some layers know no positions. Keys, defaults and names are those of Hugging Face's
// SmolLM3Config and SmolLM3ForCausalLM.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "engine/families/llama.h"

namespace decodelab::model_families {
namespace {

constexpr std::int64_t kDefaultInterval = 4;
constexpr LlamaDefaults kSmollm3Defaults{.vocabulary_size = 128256,
                                         .hidden_size = 2048,
                                         .layers = 36,
                                         .heads = 16,
                                         .kv_heads = 4,
                                         .positions = 32768,
                                         .rotary_theta = 2000000,
                                         .tied_head = true,
                                         .eos_token_id = 128001};

void read_smollm3(const ConfigKeys& keys, ModelConfig& config) {
  read_llama_keys(keys, kSmollm3Defaults, config);
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias", false);
  config.mlp_bias = keys.flag("mlp_bias", false);
  keys.require("use_sliding_window", false, "layers that see all keys");
  const auto layers = static_cast<std::size_t>(config.layers);
  if (!keys.has("no_rope_layers")) {
    const std::int64_t interval = keys.dimension_or_null({"no_rope_layer_interval"}, kDefaultInterval, kMaxLayers);
    for (std::size_t layer = 0; layer < layers; ++layer) {
      config.recipes[layer].rotary = (static_cast<std::int64_t>(layer) + 1) % interval == 0 ? -1 : 0;
    }
    return;
  }
  // Despite its name, the list has 1 for layers that turn queries and keys.
  const nlohmann::json& list = *keys.find({"no_rope_layers"});
  const std::string expected = fmt::format("a list of {} numbers 0 or 1", layers);
  if (!list.is_array() || list.size() != layers) {
    keys.refuse("no_rope_layers", expected, shown(list));
  }
  for (std::size_t layer = 0; layer < layers; ++layer) {
    if (list[layer] != nlohmann::json(0) && list[layer] != nlohmann::json(1)) {
      keys.refuse("no_rope_layers", expected, shown(list[layer]));
    }
    config.recipes[layer].rotary = list[layer] == nlohmann::json(1) ? 0 : -1;
  }
}

void write_smollm3(const ModelConfig& config, nlohmann::ordered_json& object) {
  object["architectures"] = {"SmolLM3ForCausalLM"};
  write_llama_keys(config, object);
  object["attention_bias"] = config.qkv_bias;
  object["mlp_bias"] = config.mlp_bias;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    list.push_back(config.recipe(layer).rotary < 0 ? 0 : 1);
  }
  object["no_rope_layers"] = std::move(list);
}

std::vector<SyntheticModel> synthetic_smollm3() { return {}; }

}  // namespace

const Family& smollm3() {
  static constexpr Family kFamily{.model_type = "smollm3",
                                  .prefix = "model.",
                                  .read = read_smollm3,
                                  .write = write_smollm3,
                                  .roles = roles_of_llama,
                                  .ignores = is_table_of_llama,
                                  .synthetic = synthetic_smollm3};
  return kFamily;
}

}  // namespace decodelab::model_families
