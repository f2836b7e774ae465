// GPTBigCode: SantaCoder, StarCoder and tiny_starcoder_py. Learned positions, layer norms, multi-query attention, a
// tied head. Keys, defaults and names are those of Hugging Face's GPTBigCodeConfig and GPTBigCodeForCausalLM.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/family.h"

namespace decodelab::model_families {
namespace {

void read_gpt_bigcode(const ConfigKeys& keys, ModelConfig& config) {
  constexpr std::int64_t kDefaultEos = 50256;
  keys.require("tie_word_embeddings", true, "a head that shares the token embedding");
  config.layers = keys.dimension({"n_layer", "num_hidden_layers"}, 12, kMaxLayers);
  config.hidden_size = keys.dimension({"n_embd", "hidden_size"}, 768, kMaxWidth);
  config.heads = keys.dimension({"n_head", "num_attention_heads"}, 12, kMaxWidth);
  config.positions = keys.dimension({"n_positions", "max_position_embeddings"}, 1024, kMaxRows);
  config.vocabulary_size = keys.dimension({"vocab_size"}, 50257, kMaxRows);
  config.intermediate_size = keys.dimension_or_null({"n_inner"}, 4 * config.hidden_size, kMaxIntermediate);
  if (config.hidden_size % config.heads != 0) {
    keys.refuse("n_embd", fmt::format("a multiple of n_head ({})", config.heads), std::to_string(config.hidden_size));
  }
  config.head_dim = config.hidden_size / config.heads;
  config.kv_heads = keys.flag("multi_query", true) ? 1 : config.heads;
  config.norm_epsilon = keys.number({"layer_norm_epsilon"}, 1e-5, 0, 1);
  config.activation = keys.activation({"activation_function"}, "gelu_pytorch_tanh");
  config.scale_attention_weights = keys.flag("scale_attn_weights", true);
  config.attention_softmax_in_fp32 = keys.flag("attention_softmax_in_fp32", true);
  config.scale_attention_softmax_in_fp32 = keys.flag("scale_attention_softmax_in_fp32", true);
  config.eos_token_id = keys.token("eos_token_id", kDefaultEos, config.vocabulary_size);
}

void write_gpt_bigcode(const ModelConfig& config, nlohmann::ordered_json& object) {
  object["architectures"] = {"GPTBigCodeForCausalLM"};
  object["n_layer"] = config.layers;
  object["n_embd"] = config.hidden_size;
  object["n_head"] = config.heads;
  object["n_inner"] = config.intermediate_size;
  object["n_positions"] = config.positions;
  object["vocab_size"] = config.vocabulary_size;
  object["activation_function"] = activation_name(config.activation);
  object["layer_norm_epsilon"] = config.norm_epsilon;
  object["multi_query"] = config.kv_heads == 1;
  object["scale_attn_weights"] = config.scale_attention_weights;
  object["attention_softmax_in_fp32"] = config.attention_softmax_in_fp32;
  object["scale_attention_softmax_in_fp32"] = config.scale_attention_softmax_in_fp32;
  object["tie_word_embeddings"] = true;
}

/// Rows of c_attn are ordered per head in multi-head checkpoints: [H, (query, key, value), k].
std::vector<RoleSpec> roles_of_gpt_bigcode(const ModelConfig& config) {
  const std::int64_t d = config.hidden_size;
  std::vector<RoleSpec> roles;
  const auto add = [&](const std::string& role, const std::string& stored, const std::vector<std::int64_t>& shape,
                       bool scales = false, Transform transform = Transform::none) {
    roles.push_back({.role = role,
                     .shape = shape,
                     .stored = {{.name = "transformer." + stored, .shape = shape, .scales = scales}},
                     .transform = transform,
                     .split_heads = config.heads});
  };
  const auto norm = [&](const std::string& role, const std::string& stored) {
    add(role + ".weight", stored + ".weight", {d}, true);
    add(role + ".bias", stored + ".bias", {d});
  };
  const auto linear = [&](const std::string& role, const std::string& stored, std::int64_t outputs, std::int64_t inputs,
                          Transform transform = Transform::none) {
    add(role + ".weight", stored + ".weight", {outputs, inputs}, false, transform);
    add(role + ".bias", stored + ".bias", {outputs}, false, transform);
  };
  add("embedding.weight", "wte.weight", {config.vocabulary_size, d});
  add("positions.weight", "wpe.weight", {config.positions, d});
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string role = fmt::format("layers.{}.", layer);
    const std::string stored = fmt::format("h.{}.", layer);
    norm(role + "attention_norm", stored + "ln_1");
    linear(role + "qkv", stored + "attn.c_attn", d + config.kv_width(), d,
           config.kv_heads == 1 ? Transform::none : Transform::split_heads);
    linear(role + "attention_out", stored + "attn.c_proj", d, d);
    norm(role + "mlp_norm", stored + "ln_2");
    linear(role + "up", stored + "mlp.c_fc", config.intermediate_size, d);
    linear(role + "down", stored + "mlp.c_proj", d, config.intermediate_size);
  }
  norm("final_norm", "ln_f");
  return roles;
}

bool is_mask_of_gpt_bigcode(std::string_view stored) {
  return stored.ends_with(".attn.bias") || stored.ends_with(".attn.masked_bias");
}

/// bigcode/gpt_bigcode-santacoder, bigcode/starcoder and bigcode/tiny_starcoder_py as on the hub; `tiny` is for tests.
std::vector<SyntheticModel> synthetic_gpt_bigcode() {
  const auto model = [](std::string_view name, std::int64_t layers, std::int64_t d, std::int64_t heads,
                        std::int64_t vocabulary, std::int64_t positions, Activation activation, std::int64_t eos) {
    return SyntheticModel{.name = name,
                          .config = {.family = "gpt_bigcode",
                                     .layers = layers,
                                     .hidden_size = d,
                                     .heads = heads,
                                     .kv_heads = 1,
                                     .head_dim = d / heads,
                                     .intermediate_size = 4 * d,
                                     .vocabulary_size = vocabulary,
                                     .positions = positions,
                                     .activation = activation,
                                     .eos_token_id = eos}};
  };
  return {model("santacoder", 24, 2048, 16, 49280, 2048, Activation::gelu_tanh, 49152),
          model("starcoder", 40, 6144, 48, 49152, 8192, Activation::gelu_erf, 0),
          model("tiny-starcoder", 20, 768, 12, 49152, 8192, Activation::gelu_tanh, 0),
          model("tiny", 4, 256, 4, 4096, 2048, Activation::gelu_tanh, 0)};
}

}  // namespace

const Family& gpt_bigcode() {
  static constexpr Family kFamily{.model_type = "gpt_bigcode",
                                  .prefix = "transformer.",
                                  .read = read_gpt_bigcode,
                                  .write = write_gpt_bigcode,
                                  .roles = roles_of_gpt_bigcode,
                                  .ignores = is_mask_of_gpt_bigcode,
                                  .synthetic = synthetic_gpt_bigcode};
  return kFamily;
}

}  // namespace decodelab::model_families
