// Llama 2 and 3, SmolLM2: RMS norms, gated MLP, rotary positions, grouped queries. Keys, defaults and names are those
// of Hugging Face's LlamaConfig and LlamaForCausalLM.
#include "engine/families/llama.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/rotary_keys.h"

namespace decodelab::model_families {
namespace {

void read_llama(const ConfigKeys& keys, ModelConfig& config) {
  read_llama_keys(keys, {}, config);
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias", false);
  config.mlp_bias = keys.flag("mlp_bias", false);
}

void write_llama(const ModelConfig& config, nlohmann::ordered_json& object) {
  object["architectures"] = {"LlamaForCausalLM"};
  write_llama_keys(config, object);
  object["attention_bias"] = config.qkv_bias;
  object["mlp_bias"] = config.mlp_bias;
}

/// meta-llama/Llama-3.2-1B, meta-llama/Llama-3.1-8B and HuggingFaceTB/SmolLM2-135M as on the hub; `llama-tiny` is for
/// tests.
std::vector<SyntheticModel> synthetic_llama() {
  const auto model = [](std::string_view name, const LlamaDefaults& shape, const RotaryRule& rotary) {
    return SyntheticModel{.name = name, .config = llama_config(shape, rotary, 1e-5)};
  };
  const auto stretched = [](double factor, std::int64_t dims) {
    return RotaryRule{.theta = 500000,
                      .dims = dims,
                      .scaling = RotaryScaling::llama3,
                      .factor = factor,
                      .low_frequency_factor = 1,
                      .high_frequency_factor = 4,
                      .original_positions = 8192};
  };
  return {model("llama-1b",
                {.vocabulary_size = 128256,
                 .hidden_size = 2048,
                 .intermediate_size = 8192,
                 .layers = 16,
                 .heads = 32,
                 .kv_heads = 8,
                 .head_dim = 64,
                 .positions = 131072,
                 .tied_head = true,
                 .eos_token_id = 128001},
                stretched(32, 64)),
          model("llama-8b",
                {.vocabulary_size = 128256,
                 .hidden_size = 4096,
                 .intermediate_size = 14336,
                 .layers = 32,
                 .heads = 32,
                 .kv_heads = 8,
                 .head_dim = 128,
                 .positions = 131072,
                 .eos_token_id = 128001},
                stretched(8, 128)),
          model("smollm2-135m",
                {.vocabulary_size = 49152,
                 .hidden_size = 576,
                 .intermediate_size = 1536,
                 .layers = 30,
                 .heads = 9,
                 .kv_heads = 3,
                 .head_dim = 64,
                 .positions = 8192,
                 .tied_head = true,
                 .eos_token_id = 0},
                {.theta = 100000, .dims = 64}),
          model("llama-tiny",
                {.vocabulary_size = 4096,
                 .hidden_size = 256,
                 .intermediate_size = 640,
                 .layers = 4,
                 .heads = 6,
                 .kv_heads = 2,
                 .head_dim = 32,
                 .positions = 2048,
                 .eos_token_id = 0},
                {.theta = 10000, .dims = 32})};
}

/// The table of factors by which Llama 3.1's frequencies are divided; llama.cpp's converter writes it.
constexpr std::string_view kGgufStretchTensor = "rope_freqs.weight";
/// What all models with that table have but for the factor, which is the table's greatest (Llama 3.1, 3.2 and 3.3).
constexpr double kLowFrequencyFactor = 1;
constexpr double kHighFrequencyFactor = 4;
constexpr std::int64_t kOriginalPositions = 8192;

/// Returns what a frequency of rotary embeddings is divided by.
double llama3_stretch(double frequency, double factor) {
  const double turns = static_cast<double>(kOriginalPositions) * frequency / (2 * std::numbers::pi);
  const double mix = (turns - kLowFrequencyFactor) / (kHighFrequencyFactor - kLowFrequencyFactor);
  return 1 / std::lerp(1 / factor, 1.0, std::clamp(mix, 0.0, 1.0));
}

/// Writes `rope_scaling` where the file has a type in its metadata, or that table, whose factor is found again.
void read_gguf_stretch(const GgufFile& file, const std::string& prefix, nlohmann::ordered_json& object) {
  const GgufMetadata& keys = file.metadata;
  const std::string scaling = prefix + "rope.scaling.type";
  if (keys.contains(scaling) && keys.text(scaling) != "none") {
    object["rope_scaling"] = {{"rope_type", keys.text(scaling)},
                              {"factor", keys.number(prefix + "rope.scaling.factor")}};
    if (const std::string original = prefix + "rope.scaling.original_context_length"; keys.contains(original)) {
      object["rope_scaling"]["original_max_position_embeddings"] = keys.integer(original);
    }
  }
  if (!file.tensors.contains(kGgufStretchTensor)) {
    return;
  }
  const GgufTensor& table = file.tensor(kGgufStretchTensor);
  std::vector<float> divisors(static_cast<std::size_t>(table.elements()));
  dequantize(table.type, table.data, divisors);
  const double factor = divisors.empty() ? 1 : *std::ranges::max_element(divisors);
  const double theta = object.value("rope_theta", 10000.0);
  for (std::size_t pair = 0; pair < divisors.size(); ++pair) {
    const double expected =
        llama3_stretch(std::pow(theta, -static_cast<double>(pair) / static_cast<double>(divisors.size())), factor);
    if (!(std::abs(divisors[pair] - expected) <= 1e-4 * expected)) {
      throw std::invalid_argument(fmt::format(
          "{}: tensor '{}': expected the table of Llama 3.1 for the factor {:.6g}, got {:.6g} instead of {:.6g} at {}; "
          "use the model's directory with config.json and safetensors",
          keys.file_name(), kGgufStretchTensor, factor, divisors[pair], expected, pair));
    }
  }
  object["rope_scaling"] = {{"rope_type", "llama3"},
                            {"factor", factor},
                            {"low_freq_factor", kLowFrequencyFactor},
                            {"high_freq_factor", kHighFrequencyFactor},
                            {"original_max_position_embeddings", kOriginalPositions}};
}

}  // namespace

ModelConfig llama_config(const LlamaDefaults& shape, const RotaryRule& rotary, double norm_epsilon) {
  ModelConfig config{.family = "llama",
                     .layers = shape.layers,
                     .hidden_size = shape.hidden_size,
                     .heads = shape.heads,
                     .kv_heads = shape.kv_heads,
                     .head_dim = shape.head_dim,
                     .intermediate_size = shape.intermediate_size,
                     .vocabulary_size = shape.vocabulary_size,
                     .positions = shape.positions,
                     .norm = NormKind::rms,
                     .norm_epsilon = norm_epsilon,
                     .activation = Activation::silu,
                     .gated_mlp = true,
                     .tied_head = shape.tied_head,
                     .scale_attention_softmax_in_fp32 = false,
                     .rotary = {rotary},
                     .eos_token_id = shape.eos_token_id};
  config.recipes.assign(static_cast<std::size_t>(shape.layers), {.rotary = 0});
  return config;
}

void read_window_of_later_layers(const ConfigKeys& keys, ModelConfig& config) {
  constexpr std::int64_t kDefaultWindow = 4096;
  constexpr std::int64_t kDefaultFirst = 28;
  if (!keys.flag("use_sliding_window", false)) {
    return;
  }
  const std::int64_t window = keys.dimension_or_null({"sliding_window"}, kDefaultWindow, kMaxRows);
  const std::int64_t first = keys.dimension_or_null({"max_window_layers"}, kDefaultFirst, kMaxLayers);
  for (std::int64_t layer = first; layer < config.layers; ++layer) {
    config.recipes[static_cast<std::size_t>(layer)].window = window;
  }
}

void read_llama_keys(const ConfigKeys& keys, const LlamaDefaults& defaults, ModelConfig& config) {
  config.layers = keys.dimension({"num_hidden_layers"}, defaults.layers, kMaxLayers);
  config.hidden_size = keys.dimension({"hidden_size"}, defaults.hidden_size, kMaxWidth);
  config.heads = keys.dimension({"num_attention_heads"}, defaults.heads, kMaxWidth);
  config.kv_heads = keys.dimension_or_null({"num_key_value_heads"},
                                           defaults.kv_heads == 0 ? config.heads : defaults.kv_heads, kMaxWidth);
  if (config.heads % config.kv_heads != 0) {
    keys.refuse("num_attention_heads", fmt::format("a multiple of num_key_value_heads ({})", config.kv_heads),
                std::to_string(config.heads));
  }
  if (defaults.head_dim == 0 && !keys.has("head_dim") && config.hidden_size % config.heads != 0) {
    keys.refuse("hidden_size", fmt::format("a multiple of num_attention_heads ({}), or a key head_dim", config.heads),
                std::to_string(config.hidden_size));
  }
  config.head_dim = keys.dimension_or_null(
      {"head_dim"}, defaults.head_dim == 0 ? config.hidden_size / config.heads : defaults.head_dim, kMaxWidth);
  if (config.head_dim % 2 != 0) {
    keys.refuse("head_dim", "an even number, since rotary positions turn pairs", std::to_string(config.head_dim));
  }
  config.intermediate_size = keys.dimension({"intermediate_size"}, defaults.intermediate_size, kMaxIntermediate);
  config.vocabulary_size = keys.dimension({"vocab_size"}, defaults.vocabulary_size, kMaxRows);
  config.positions = keys.dimension({"max_position_embeddings"}, defaults.positions, kMaxRows);
  config.norm = NormKind::rms;
  config.norm_epsilon = keys.number({"rms_norm_eps"}, 1e-6, 0, 1);
  config.activation = keys.activation({"hidden_act"}, "silu");
  config.gated_mlp = true;
  config.tied_head = keys.flag("tie_word_embeddings", defaults.tied_head);
  config.attention_softmax_in_fp32 = true;
  config.scale_attention_softmax_in_fp32 = false;
  config.rotary = {read_rotary_rule(keys, defaults.rotary_theta, config.head_dim, config.positions)};
  config.recipes.assign(static_cast<std::size_t>(config.layers), {.rotary = 0});
  config.eos_token_id = keys.token("eos_token_id", defaults.eos_token_id, config.vocabulary_size);
}

void write_llama_keys(const ModelConfig& config, nlohmann::ordered_json& object) {
  object["num_hidden_layers"] = config.layers;
  object["hidden_size"] = config.hidden_size;
  object["num_attention_heads"] = config.heads;
  object["num_key_value_heads"] = config.kv_heads;
  object["head_dim"] = config.head_dim;
  object["intermediate_size"] = config.intermediate_size;
  object["vocab_size"] = config.vocabulary_size;
  object["max_position_embeddings"] = config.positions;
  object["rms_norm_eps"] = config.norm_epsilon;
  object["hidden_act"] = activation_name(config.activation);
  object["tie_word_embeddings"] = config.tied_head;
  write_rotary_rule(config.rotary.front(), object);
}

std::vector<RoleSpec> roles_of_llama(const ModelConfig& config) {
  const std::int64_t d = config.hidden_size;
  const std::int64_t query_width = config.heads * config.head_dim;
  const std::int64_t key_width = config.kv_heads * config.head_dim;
  std::vector<RoleSpec> roles;
  const bool scales = config.norm != NormKind::rms_plus_one;  // whose weights are added to 1
  const auto norm = [&](const std::string& role, const std::string& stored, std::int64_t width) {
    roles.push_back({.role = role + ".weight",
                     .shape = {width},
                     .stored = {{.name = stored + ".weight", .shape = {width}, .scales = scales}}});
  };
  // The parts of a product, each a stored name and its rows.
  using Parts = std::vector<std::pair<std::string, std::int64_t>>;
  const auto product = [&](const std::string& role, const Parts& parts, std::int64_t inputs, bool bias) {
    RoleSpec matrix{.role = role + ".weight", .transform = Transform::concatenated};
    RoleSpec shift{.role = role + ".bias", .transform = Transform::concatenated};
    std::int64_t outputs = 0;
    for (const auto& [stored, rows] : parts) {
      outputs += rows;
      matrix.stored.push_back({.name = stored + ".weight", .shape = {rows, inputs}});
      shift.stored.push_back({.name = stored + ".bias", .shape = {rows}});
    }
    if (parts.size() == 1) {
      matrix.transform = shift.transform = Transform::none;
    }
    matrix.shape = {outputs, inputs};
    shift.shape = {outputs};
    roles.push_back(std::move(matrix));
    if (bias) {
      roles.push_back(std::move(shift));
    }
  };
  product("embedding", {{"model.embed_tokens", config.vocabulary_size}}, d, false);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string role = fmt::format("layers.{}.", layer);
    const std::string stored = fmt::format("model.layers.{}.", layer);
    const std::string attention = stored + "self_attn.";
    norm(role + "attention_norm", stored + "input_layernorm", d);
    product(role + "qkv",
            {{attention + "q_proj", query_width}, {attention + "k_proj", key_width}, {attention + "v_proj", key_width}},
            d, config.qkv_bias);
    if (config.qk_norm) {
      norm(role + "query_norm", attention + "q_norm", config.head_dim);
      norm(role + "key_norm", attention + "k_norm", config.head_dim);
    }
    product(role + "attention_out", {{attention + "o_proj", d}}, query_width, config.attention_out_bias);
    if (config.post_norms) {
      norm(role + "attention_post_norm", stored + "post_attention_layernorm", d);
    }
    norm(role + "mlp_norm", stored + (config.post_norms ? "pre_feedforward_layernorm" : "post_attention_layernorm"), d);
    product(role + "up",
            {{stored + "mlp.gate_proj", config.intermediate_size}, {stored + "mlp.up_proj", config.intermediate_size}},
            d, config.mlp_bias);
    product(role + "down", {{stored + "mlp.down_proj", d}}, config.intermediate_size, config.mlp_bias);
    if (config.post_norms) {
      norm(role + "mlp_post_norm", stored + "post_feedforward_layernorm", d);
    }
  }
  norm("final_norm", "model.norm", d);
  if (!config.tied_head) {
    product("head", {{"lm_head", config.vocabulary_size}}, d, false);
  }
  return roles;
}

void gguf_config_of_llama(const GgufFile& file, const std::string& prefix, nlohmann::ordered_json& object) {
  const GgufMetadata& keys = file.metadata;
  using KeyPair = std::pair<const char*, const char*>;
  for (const auto& [name, key] : std::initializer_list<KeyPair>{{"num_hidden_layers", "block_count"},
                                                                {"hidden_size", "embedding_length"},
                                                                {"intermediate_size", "feed_forward_length"},
                                                                {"num_attention_heads", "attention.head_count"},
                                                                {"max_position_embeddings", "context_length"}}) {
    object[name] = keys.integer(prefix + key);
  }
  for (const auto& [name, key] : std::initializer_list<KeyPair>{{"num_key_value_heads", "attention.head_count_kv"},
                                                                {"head_dim", "attention.key_length"}}) {
    if (keys.contains(prefix + key)) {
      object[name] = keys.integer(prefix + key);
    }
  }
  object["rms_norm_eps"] = keys.number(prefix + "attention.layer_norm_rms_epsilon");
  if (keys.contains(prefix + "rope.freq_base")) {
    object["rope_theta"] = keys.number(prefix + "rope.freq_base");
  }
  read_gguf_stretch(file, prefix, object);
  object["vocab_size"] = file.tensor("token_embd.weight").shape.front();
  object["tie_word_embeddings"] = !file.tensors.contains("output.weight");
  object["attention_bias"] = file.tensors.contains("blk.0.attn_q.bias");
  if (keys.contains("tokenizer.ggml.eos_token_id")) {
    object["eos_token_id"] = keys.integer("tokenizer.ggml.eos_token_id");
  }
}

std::string stored_name_of_llama(std::string_view gguf_name) {
  static const std::map<std::string_view, std::string_view> whole_names{
      {"token_embd.weight", "model.embed_tokens.weight"},
      {"output_norm.weight", "model.norm.weight"},
      {"output.weight", "lm_head.weight"},
      {kGgufStretchTensor, ""}};
  static const std::map<std::string_view, std::string_view> layer_names{
      {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
      {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
      {"attn_q_norm", "self_attn.q_norm"}, {"attn_k_norm", "self_attn.k_norm"},
      {"attn_output", "self_attn.o_proj"}, {"ffn_norm", "post_attention_layernorm"},
      {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
      {"ffn_down", "mlp.down_proj"}};
  if (const auto whole = whole_names.find(gguf_name); whole != whole_names.end()) {
    return std::string(whole->second);
  }
  // blk.LAYER.PART.weight
  constexpr std::string_view kBlock = "blk.";
  const std::size_t end_of_layer = gguf_name.find('.', kBlock.size());
  const std::size_t end_of_part = gguf_name.rfind('.');
  if (gguf_name.starts_with(kBlock) && end_of_layer < end_of_part) {
    const auto part = layer_names.find(gguf_name.substr(end_of_layer + 1, end_of_part - end_of_layer - 1));
    if (part != layer_names.end()) {
      return fmt::format("model.layers.{}.{}{}", gguf_name.substr(kBlock.size(), end_of_layer - kBlock.size()),
                         part->second, gguf_name.substr(end_of_part));
    }
  }
  return std::string(gguf_name);  // Unknown, and refused by that name.
}

bool is_table_of_llama(std::string_view stored) { return stored.ends_with(".rotary_emb.inv_freq"); }

const Family& llama() {
  static constexpr GgufNames kGguf{.architecture = "llama",
                                   .config = gguf_config_of_llama,
                                   .stored_name = stored_name_of_llama,
                                   .permutes_queries_and_keys = true};
  static constexpr Family kFamily{.model_type = "llama",
                                  .prefix = "model.",
                                  .read = read_llama,
                                  .write = write_llama,
                                  .roles = roles_of_llama,
                                  .ignores = is_table_of_llama,
                                  .synthetic = synthetic_llama,
                                  .gguf = &kGguf};
  return kFamily;
}

}  // namespace decodelab::model_families
