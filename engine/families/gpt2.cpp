// GPT-2: learned positions, layer norms, a tied head, matrices stored as [inputs, outputs]. Keys, defaults and names
// are those of Hugging Face's GPT2Config and GPT2LMHeadModel, and of the code that bigcode/santacoder brings along,
// whose heads may share one key head.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/family.h"

namespace decodelab::model_families {
namespace {

constexpr std::string_view kMultiHead = "multihead";
constexpr std::string_view kMultiQuery = "multiquery";

bool is_multi_query(const ModelConfig& config) { return config.kv_heads < config.heads; }

void read_gpt2(const ConfigKeys& keys, ModelConfig& config) {
  constexpr std::int64_t kDefaultEos = 50256;
  keys.require("tie_word_embeddings", true, "a head that shares the token embedding");
  keys.require("scale_attn_by_inverse_layer_idx", false, "scores that are scaled alike in every layer");
  config.layers = keys.dimension({"n_layer", "num_hidden_layers"}, 12, kMaxLayers);
  config.hidden_size = keys.dimension({"n_embd", "hidden_size"}, 768, kMaxWidth);
  config.heads = keys.dimension({"n_head", "num_attention_heads"}, 12, kMaxWidth);
  const std::string head_type = keys.text("attention_head_type", kMultiHead);
  if (head_type != kMultiHead && head_type != kMultiQuery) {
    keys.refuse("attention_head_type", fmt::format("{} or {}", kMultiHead, kMultiQuery), "'" + head_type + "'");
  }
  config.kv_heads = head_type == kMultiQuery ? 1 : config.heads;
  config.positions = keys.dimension({"n_positions", "max_position_embeddings"}, 1024, kMaxRows);
  config.vocabulary_size = keys.dimension({"vocab_size"}, 50257, kMaxRows);
  config.intermediate_size = keys.dimension_or_null({"n_inner"}, 4 * config.hidden_size, kMaxIntermediate);
  if (config.hidden_size % config.heads != 0) {
    keys.refuse("n_embd", fmt::format("a multiple of n_head ({})", config.heads), std::to_string(config.hidden_size));
  }
  config.head_dim = config.hidden_size / config.heads;
  config.norm_epsilon = keys.number({"layer_norm_epsilon"}, 1e-5, 0, 1);
  config.activation = keys.activation({"activation_function"}, "gelu_new");
  config.scale_attention_weights = keys.flag("scale_attn_weights", true);
  // The softmax runs in the weights' dtype.
  config.attention_softmax_in_fp32 = false;
  config.scale_attention_softmax_in_fp32 = false;
  config.eos_token_id = keys.token("eos_token_id", kDefaultEos, config.vocabulary_size);
}

void write_gpt2(const ModelConfig& config, nlohmann::ordered_json& object) {
  object["architectures"] = {is_multi_query(config) ? "GPT2LMHeadCustomModel" : "GPT2LMHeadModel"};
  if (is_multi_query(config)) {
    object["attention_head_type"] = kMultiQuery;
  }
  object["n_layer"] = config.layers;
  object["n_embd"] = config.hidden_size;
  object["n_head"] = config.heads;
  object["n_inner"] = config.intermediate_size;
  object["n_positions"] = config.positions;
  object["vocab_size"] = config.vocabulary_size;
  object["activation_function"] = activation_name(config.activation);
  object["layer_norm_epsilon"] = config.norm_epsilon;
  object["scale_attn_weights"] = config.scale_attention_weights;
}

std::vector<RoleSpec> roles_of_gpt2(const ModelConfig& config) {
  const std::int64_t d = config.hidden_size;
  std::vector<RoleSpec> roles;
  const auto table = [&](const std::string& role, const std::string& stored, std::int64_t rows) {
    roles.push_back(
        {.role = role, .shape = {rows, d}, .stored = {{.name = "transformer." + stored, .shape = {rows, d}}}});
  };
  const auto vector = [&](const std::string& role, const std::string& stored, std::int64_t width, bool scales) {
    roles.push_back({.role = role,
                     .shape = {width},
                     .stored = {{.name = "transformer." + stored, .shape = {width}, .scales = scales}}});
  };
  const auto norm = [&](const std::string& role, const std::string& stored) {
    vector(role + ".weight", stored + ".weight", d, true);
    vector(role + ".bias", stored + ".bias", d, false);
  };
  const auto linear = [&](const std::string& role, const std::string& stored, std::int64_t outputs,
                          std::int64_t inputs) {
    roles.push_back({.role = role + ".weight",
                     .shape = {outputs, inputs},
                     .stored = {{.name = "transformer." + stored + ".weight", .shape = {inputs, outputs}}},
                     .transform = Transform::transposed});
    vector(role + ".bias", stored + ".bias", outputs, false);
  };
  // Queries have a product of their own, and keys and values another one.
  const auto multi_query = [&](const std::string& role, const std::string& stored) {
    const std::int64_t keys = config.kv_width();
    const std::string q = "transformer." + stored + "attn.q_attn.";
    const std::string kv = "transformer." + stored + "attn.kv_attn.";
    roles.push_back({.role = role + "qkv.weight",
                     .shape = {d + keys, d},
                     .stored = {{.name = q + "weight", .shape = {d, d}}, {.name = kv + "weight", .shape = {d, keys}}},
                     .transform = Transform::transposed_concatenated});
    roles.push_back({.role = role + "qkv.bias",
                     .shape = {d + keys},
                     .stored = {{.name = q + "bias", .shape = {d}}, {.name = kv + "bias", .shape = {keys}}},
                     .transform = Transform::concatenated});
  };
  table("embedding.weight", "wte.weight", config.vocabulary_size);
  table("positions.weight", "wpe.weight", config.positions);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string role = fmt::format("layers.{}.", layer);
    const std::string stored = fmt::format("h.{}.", layer);
    norm(role + "attention_norm", stored + "ln_1");
    is_multi_query(config) ? multi_query(role, stored) : linear(role + "qkv", stored + "attn.c_attn", 3 * d, d);
    linear(role + "attention_out", stored + "attn.c_proj", d, d);
    norm(role + "mlp_norm", stored + "ln_2");
    linear(role + "up", stored + "mlp.c_fc", config.intermediate_size, d);
    linear(role + "down", stored + "mlp.c_proj", d, config.intermediate_size);
  }
  norm("final_norm", "ln_f");
  return roles;
}

bool is_mask_of_gpt2(std::string_view stored) {
  return stored.ends_with(".attn.bias") || stored.ends_with(".attn.masked_bias");
}

/// openai-community/gpt2 as on the hub.
std::vector<SyntheticModel> synthetic_gpt2() {
  return {{.name = "gpt2",
           .config = {.family = "gpt2",
                      .layers = 12,
                      .hidden_size = 768,
                      .heads = 12,
                      .kv_heads = 12,
                      .head_dim = 64,
                      .intermediate_size = 3072,
                      .vocabulary_size = 50257,
                      .positions = 1024,
                      .attention_softmax_in_fp32 = false,
                      .scale_attention_softmax_in_fp32 = false,
                      .eos_token_id = 50256}}};
}

}  // namespace

const Family& gpt2() {
  static constexpr Family kFamily{.model_type = "gpt2",
                                  .prefix = "transformer.",
                                  .read = read_gpt2,
                                  .write = write_gpt2,
                                  .roles = roles_of_gpt2,
                                  .ignores = is_mask_of_gpt2,
                                  .synthetic = synthetic_gpt2};
  return kFamily;
}

}  // namespace decodelab::model_families
