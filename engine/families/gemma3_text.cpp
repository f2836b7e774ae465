// Gemma 3, the text model: norms on both sides of attention and MLP, windows in most layers, two kinds of rotary
// positions. Keys, defaults and names are those of Hugging Face's Gemma3TextConfig and Gemma3ForCausalLM.
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "engine/checkpoint/rotary_keys.h"
#include "engine/families/llama.h"

namespace decodelab::model_families {
namespace {

constexpr LlamaDefaults kGemmaDefaults{.vocabulary_size = 262208,
                                       .hidden_size = 2304,
                                       .intermediate_size = 9216,
                                       .layers = 26,
                                       .heads = 8,
                                       .kv_heads = 4,
                                       .head_dim = 256,
                                       .positions = 131072,
                                       .tied_head = true,
                                       .eos_token_id = 1};
constexpr double kGlobalTheta = 1e6;
constexpr double kLocalTheta = 1e4;
constexpr double kMostTheta = 1e12;
constexpr std::int64_t kGemmaWindow = 4096;
constexpr std::int64_t kDefaultPattern = 6;  ///< Every sixth layer sees all keys.
constexpr const char* kSliding = "sliding_attention";
constexpr const char* kFull = "full_attention";
/// Indexes of ModelConfig::rotary.
constexpr int kGlobal = 0;
constexpr int kLocal = 1;

/// Returns the keys of `rope_parameters` at `name`, in which Transformers 5 has one object a kind of layer.
RotaryRule rule_of(const ConfigKeys& keys, const char* name, double theta, const ModelConfig& config) {
  if (const std::optional<ConfigKeys> kinds = keys.object("rope_parameters")) {
    const std::optional<ConfigKeys> own = kinds->object(name);
    return own ? read_rotary_rule(*kinds, name, *own, theta, config.head_dim, config.positions)
               : RotaryRule{.theta = theta, .dims = config.head_dim};
  }
  return {.theta = theta, .dims = config.head_dim};
}

void read_layer_kinds(const ConfigKeys& keys, ModelConfig& config) {
  const std::int64_t window = keys.dimension_or_null({"sliding_window"}, kGemmaWindow, kMaxRows);
  const auto set = [&](std::size_t layer, bool slides) {
    config.recipes[layer] = {.rotary = slides ? kLocal : kGlobal, .window = slides ? window : 0};
  };
  const auto layers = static_cast<std::size_t>(config.layers);
  if (!keys.has("layer_types")) {
    const auto pattern =
        static_cast<std::size_t>(keys.dimension_or_null({"sliding_window_pattern"}, kDefaultPattern, kMaxLayers));
    for (std::size_t layer = 0; layer < layers; ++layer) {
      set(layer, (layer + 1) % pattern != 0);
    }
    return;
  }
  const nlohmann::json& kinds = *keys.find({"layer_types"});
  const std::string expected = fmt::format("a list of {} texts '{}' or '{}'", layers, kSliding, kFull);
  if (!kinds.is_array() || kinds.size() != layers) {
    keys.refuse("layer_types", expected, shown(kinds));
  }
  for (std::size_t layer = 0; layer < layers; ++layer) {
    if (kinds[layer] != nlohmann::json(kSliding) && kinds[layer] != nlohmann::json(kFull)) {
      keys.refuse("layer_types", expected, shown(kinds[layer]));
    }
    set(layer, kinds[layer] == nlohmann::json(kSliding));
  }
}

void refuse_soft_caps(const ConfigKeys& keys) {
  for (const char* key : {"final_logit_softcapping", "attn_logit_softcapping"}) {
    if (keys.has(key)) {
      keys.refuse(key, "null: logits that no tanh caps", shown(*keys.find({key})));
    }
  }
}

void read_gemma3(const ConfigKeys& keys, ModelConfig& config) {
  refuse_soft_caps(keys);
  keys.require("use_bidirectional_attention", false, "queries see the keys before them");
  read_llama_keys(keys, kGemmaDefaults, config);
  config.activation = keys.activation({"hidden_activation"}, "gelu_pytorch_tanh");
  config.norm = NormKind::rms_plus_one;
  config.qk_norm = config.post_norms = true;
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias", false);
  config.embedding_scale = std::sqrt(static_cast<double>(config.hidden_size));
  config.query_scalar = keys.number({"query_pre_attn_scalar"}, 256, 0, static_cast<double>(kMaxWidth));
  // The old keys scale the layers that see all keys; the others have a key of their own.
  const RotaryRule global = keys.has("rope_parameters")
                                ? rule_of(keys, kFull, kGlobalTheta, config)
                                : read_rotary_rule(keys, kGlobalTheta, config.head_dim, config.positions);
  const double local_theta = keys.number({"rope_local_base_freq"}, kLocalTheta, 0, kMostTheta);
  config.rotary = {global, rule_of(keys, kSliding, local_theta, config)};
  read_layer_kinds(keys, config);
}

void write_gemma3(const ModelConfig& config, nlohmann::ordered_json& object) {
  object["architectures"] = {"Gemma3ForCausalLM"};
  write_llama_keys(config, object);
  object.erase("hidden_act");
  object["hidden_activation"] = activation_name(config.activation);
  object["attention_bias"] = config.qkv_bias;
  object["query_pre_attn_scalar"] = config.query_scalar;
  object["rope_local_base_freq"] = config.rotary.at(kLocal).theta;
  nlohmann::ordered_json kinds = nlohmann::ordered_json::array();
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::int64_t window = config.recipe(layer).window;
    kinds.push_back(window > 0 ? kSliding : kFull);
    if (window > 0) {
      object["sliding_window"] = window;
    }
  }
  object["layer_types"] = std::move(kinds);
}

/// google/gemma-3-270m as on the hub.
std::vector<SyntheticModel> synthetic_gemma3() {
  ModelConfig config = llama_config({.vocabulary_size = 262144,
                                     .hidden_size = 640,
                                     .intermediate_size = 2048,
                                     .layers = 18,
                                     .heads = 4,
                                     .kv_heads = 1,
                                     .head_dim = 256,
                                     .positions = 32768,
                                     .tied_head = true,
                                     .eos_token_id = 1},
                                    {.theta = kGlobalTheta, .dims = 256}, 1e-6);
  config.family = "gemma3_text";
  config.norm = NormKind::rms_plus_one;
  config.activation = Activation::gelu_tanh;
  config.qk_norm = config.post_norms = true;
  config.embedding_scale = std::sqrt(static_cast<double>(config.hidden_size));
  config.query_scalar = 256;
  config.rotary.push_back({.theta = kLocalTheta, .dims = 256});
  for (std::size_t layer = 0; layer < config.recipes.size(); ++layer) {
    if ((layer + 1) % kDefaultPattern != 0) {
      config.recipes[layer] = {.rotary = kLocal, .window = 512};
    }
  }
  return {{.name = "gemma3-270m", .config = std::move(config)}};
}

}  // namespace

const Family& gemma3_text() {
  static constexpr Family kFamily{.model_type = "gemma3_text",
                                  .prefix = "model.",
                                  .read = read_gemma3,
                                  .write = write_gemma3,
                                  .roles = roles_of_llama,
                                  .ignores = is_table_of_llama,
                                  .synthetic = synthetic_gemma3};
  return kFamily;
}

}  // namespace decodelab::model_families
