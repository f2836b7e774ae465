// GPT-NeoX: pythia, RedPajama-INCITE, dolly. Layer norms, partly rotary positions, attention and MLP side by side.
// Keys, defaults and names are those of Hugging Face's GPTNeoXConfig and GPTNeoXForCausalLM.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/family.h"
#include "engine/checkpoint/rotary_keys.h"

namespace decodelab::model_families {
namespace {

void read_gpt_neox(const ConfigKeys& keys, ModelConfig& config) {
  config.layers = keys.dimension({"num_hidden_layers"}, 44, kMaxLayers);
  config.hidden_size = keys.dimension({"hidden_size"}, 6144, kMaxWidth);
  config.heads = config.kv_heads = keys.dimension({"num_attention_heads"}, 64, kMaxWidth);
  config.intermediate_size = keys.dimension({"intermediate_size"}, 24576, kMaxIntermediate);
  config.vocabulary_size = keys.dimension({"vocab_size"}, 50432, kMaxRows);
  config.positions = keys.dimension({"max_position_embeddings"}, 2048, kMaxRows);
  if (config.hidden_size % config.heads != 0) {
    keys.refuse("hidden_size", fmt::format("a multiple of num_attention_heads ({})", config.heads),
                std::to_string(config.hidden_size));
  }
  config.head_dim = config.hidden_size / config.heads;
  config.norm_epsilon = keys.number({"layer_norm_eps"}, 1e-5, 0, 1);
  config.activation = keys.activation({"hidden_act"}, "gelu");
  config.tied_head = keys.flag("tie_word_embeddings", false);
  config.parallel_residual = keys.flag("use_parallel_residual", true);
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias", true);
  config.scale_attention_softmax_in_fp32 = false;
  double share = keys.number({"rotary_pct"}, 0.25, 0, 1.0001);
  if (const auto rotary = keys.object("rope_parameters"); rotary && rotary->has("partial_rotary_factor")) {
    share = rotary->number({"partial_rotary_factor"}, share, 0, 1.0001);
  }
  const auto dims = static_cast<std::int64_t>(static_cast<double>(config.head_dim) * share);
  if (dims < 2 || dims % 2 != 0) {
    keys.refuse("rotary_pct", "a share of the head that is an even number of elements", std::to_string(dims));
  }
  const double theta = keys.number({"rotary_emb_base"}, 10000, 0, 1e12);
  config.rotary = {read_rotary_rule(keys, theta, dims, config.positions)};
  config.recipes.assign(static_cast<std::size_t>(config.layers), {.rotary = 0});
  config.eos_token_id = keys.token("eos_token_id", 2, config.vocabulary_size);
}

void write_gpt_neox(const ModelConfig& config, nlohmann::ordered_json& object) {
  object["architectures"] = {"GPTNeoXForCausalLM"};
  object["num_hidden_layers"] = config.layers;
  object["hidden_size"] = config.hidden_size;
  object["num_attention_heads"] = config.heads;
  object["intermediate_size"] = config.intermediate_size;
  object["vocab_size"] = config.vocabulary_size;
  object["max_position_embeddings"] = config.positions;
  object["layer_norm_eps"] = config.norm_epsilon;
  object["hidden_act"] = activation_name(config.activation);
  object["tie_word_embeddings"] = config.tied_head;
  object["use_parallel_residual"] = config.parallel_residual;
  object["attention_bias"] = config.qkv_bias;
  object["rotary_pct"] = static_cast<double>(config.rotary.front().dims) / static_cast<double>(config.head_dim);
  object["rotary_emb_base"] = config.rotary.front().theta;
  write_rotary_rule(config.rotary.front(), object);
}

/// Rows of query_key_value are ordered per head, [H, (query, key, value), k].
std::vector<RoleSpec> roles_of_gpt_neox(const ModelConfig& config) {
  const std::int64_t d = config.hidden_size;
  std::vector<RoleSpec> roles;
  const auto add = [&](const std::string& role, const std::string& stored, const std::vector<std::int64_t>& shape,
                       bool scales = false, Transform transform = Transform::none) {
    roles.push_back({.role = role,
                     .shape = shape,
                     .stored = {{.name = stored, .shape = shape, .scales = scales}},
                     .transform = transform,
                     .split_heads = config.heads});
  };
  const auto norm = [&](const std::string& role, const std::string& stored) {
    add(role + ".weight", stored + ".weight", {d}, true);
    add(role + ".bias", stored + ".bias", {d});
  };
  const auto linear = [&](const std::string& role, const std::string& stored, std::int64_t outputs, std::int64_t inputs,
                          bool bias, Transform transform = Transform::none) {
    add(role + ".weight", stored + ".weight", {outputs, inputs}, false, transform);
    if (bias) {
      add(role + ".bias", stored + ".bias", {outputs}, false, transform);
    }
  };
  linear("embedding", "gpt_neox.embed_in", config.vocabulary_size, d, false);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string role = fmt::format("layers.{}.", layer);
    const std::string stored = fmt::format("gpt_neox.layers.{}.", layer);
    norm(role + "attention_norm", stored + "input_layernorm");
    linear(role + "qkv", stored + "attention.query_key_value", 3 * d, d, config.qkv_bias, Transform::split_heads);
    linear(role + "attention_out", stored + "attention.dense", d, d, config.attention_out_bias);
    norm(role + "mlp_norm", stored + "post_attention_layernorm");
    linear(role + "up", stored + "mlp.dense_h_to_4h", config.intermediate_size, d, true);
    linear(role + "down", stored + "mlp.dense_4h_to_h", d, config.intermediate_size, true);
  }
  norm("final_norm", "gpt_neox.final_layer_norm");
  if (!config.tied_head) {
    linear("head", "embed_out", config.vocabulary_size, d, false);
  }
  return roles;
}

bool is_table_of_gpt_neox(std::string_view stored) {
  return stored.ends_with(".attention.bias") || stored.ends_with(".attention.masked_bias") ||
         stored.ends_with(".rotary_emb.inv_freq");
}

/// EleutherAI/pythia-160m and togethercomputer/RedPajama-INCITE-Base-3B-v1 as on the hub.
std::vector<SyntheticModel> synthetic_gpt_neox() {
  const auto model = [](std::string_view name, std::int64_t layers, std::int64_t d, std::int64_t heads,
                        std::int64_t vocabulary, std::int64_t rotary_dims, bool parallel) {
    ModelConfig config{.family = "gpt_neox",
                       .layers = layers,
                       .hidden_size = d,
                       .heads = heads,
                       .kv_heads = heads,
                       .head_dim = d / heads,
                       .intermediate_size = 4 * d,
                       .vocabulary_size = vocabulary,
                       .positions = 2048,
                       .activation = Activation::gelu_erf,
                       .parallel_residual = parallel,
                       .qkv_bias = true,
                       .attention_out_bias = true,
                       .tied_head = false,
                       .scale_attention_softmax_in_fp32 = false,
                       .rotary = {{.theta = 10000, .dims = rotary_dims}},
                       .eos_token_id = 0};
    config.recipes.assign(static_cast<std::size_t>(layers), {.rotary = 0});
    return SyntheticModel{.name = name, .config = std::move(config)};
  };
  return {model("pythia-160m", 12, 768, 12, 50304, 16, true), model("redpajama-3b", 32, 2560, 32, 50432, 80, false)};
}

}  // namespace

const Family& gpt_neox() {
  static constexpr Family kFamily{.model_type = "gpt_neox",
                                  .prefix = "gpt_neox.",
                                  .read = read_gpt_neox,
                                  .write = write_gpt_neox,
                                  .roles = roles_of_gpt_neox,
                                  .ignores = is_table_of_gpt_neox,
                                  .synthetic = synthetic_gpt_neox};
  return kFamily;
}

}  // namespace decodelab::model_families
