// Reads and writes the config.json of the gpt_bigcode family.
#include "engine/checkpoint/model_config.h"

#include <array>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_text.h"

namespace decodelab {
namespace {

using nlohmann::json;

constexpr std::string_view kFamily = "gpt_bigcode";
constexpr std::uintmax_t kMaxConfigBytes = 10'000'000;  // A real one has 2 KB.

// Upper bounds far beyond any model, and low enough that no product of them below overflows 63 bits.
constexpr std::int64_t kMaxLayers = std::int64_t{1} << 13;
constexpr std::int64_t kMaxWidth = std::int64_t{1} << 20;
constexpr std::int64_t kMaxIntermediate = std::int64_t{1} << 23;
constexpr std::int64_t kMaxRows = std::int64_t{1} << 26;  // Vocabulary and positions.

struct ActivationName {
  std::string_view name;
  Activation activation;
};
// gelu_new and gelu_fast are the tanh approximation with another order of operations; gelu_python is the erf one.
constexpr std::array<ActivationName, 5> kActivations{{{"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                      {"gelu_new", Activation::gelu_tanh},
                                                      {"gelu_fast", Activation::gelu_tanh},
                                                      {"gelu", Activation::gelu_erf},
                                                      {"gelu_python", Activation::gelu_erf}}};

// The keys of one file, typed. Every message names the file, the key, what was expected and what was there.
class Keys {
 public:
  Keys(const json& object, const std::string& file_name) : object_(object), file_name_(file_name) {}

  [[noreturn]] void refuse(std::string_view key, const std::string& expected, const std::string& got) const {
    throw std::invalid_argument(fmt::format("{}: key '{}': expected {}, got {}", file_name_, key, expected, got));
  }

  // The value of the first of `names` that is there, or null. The others are transformers' aliases and must agree.
  const json* find(std::initializer_list<const char*> names) const {
    const json* value = nullptr;
    for (const char* name : names) {
      const auto found = object_.find(name);
      if (found == object_.end()) {
        continue;
      }
      if (value != nullptr && *value != *found) {
        refuse(name, fmt::format("the same as '{}' ({})", *names.begin(), shown(*value)), shown(*found));
      }
      value = &*found;
    }
    return value;
  }

  std::int64_t dimension(std::initializer_list<const char*> names, std::int64_t fallback, std::int64_t limit) const {
    const json* value = find(names);
    if (value == nullptr) {
      return fallback;
    }
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() == 0 ||
        value->get<std::uint64_t>() > static_cast<std::uint64_t>(limit)) {
      refuse(*names.begin(), fmt::format("an integer from 1 to {}", limit), shown(*value));
    }
    return value->get<std::int64_t>();
  }

  bool flag(const char* name, bool fallback) const {
    const json* value = find({name});
    if (value == nullptr) {
      return fallback;
    }
    if (!value->is_boolean()) {
      refuse(name, "true or false", shown(*value));
    }
    return value->get<bool>();
  }

 private:
  const json& object_;
  const std::string& file_name_;
};

void check_family(const Keys& keys) {
  const json* family = keys.find({"model_type"});
  if (family == nullptr) {
    keys.refuse("model_type", fmt::format("a supported family ({})", kFamily), "none");
  }
  if (*family != json(kFamily)) {
    keys.refuse("model_type", fmt::format("a supported family ({})", kFamily), shown(*family));
  }
  if (keys.flag("add_cross_attention", false)) {
    keys.refuse("add_cross_attention", "false (a decoder alone)", "true");
  }
  if (!keys.flag("tie_word_embeddings", true)) {
    keys.refuse("tie_word_embeddings", "true (a head that shares the token embedding)", "false");
  }
  const json* quantization = keys.find({"quantization_config"});
  if (quantization != nullptr && !quantization->is_null()) {
    keys.refuse("quantization_config", "none: weights in F32, F16 or BF16; use the checkpoint before its quantization",
                shown(*quantization));
  }
}

double epsilon(const Keys& keys) {
  const json* value = keys.find({"layer_norm_epsilon"});
  if (value == nullptr) {
    return 1e-5;
  }
  const double number = value->is_number() ? value->get<double>() : -1;
  if (!(number > 0 && number < 1)) {
    keys.refuse("layer_norm_epsilon", "a number between 0 and 1", shown(*value));
  }
  return number;
}

Activation activation(const Keys& keys) {
  const json* value = keys.find({"activation_function"});
  if (value == nullptr) {
    return Activation::gelu_tanh;
  }
  std::string names;
  for (const ActivationName& known : kActivations) {
    if (*value == json(known.name)) {
      return known.activation;
    }
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  keys.refuse("activation_function", fmt::format("one of {}", names), shown(*value));
}

std::int64_t eos_token(const Keys& keys, std::int64_t vocabulary_size) {
  constexpr std::int64_t kDefault = 50256;  // GPTBigCodeConfig's.
  const json* value = keys.find({"eos_token_id"});
  if (value != nullptr && value->is_array()) {
    value = value->empty() ? nullptr : &value->front();
  } else if (value == nullptr) {
    return kDefault < vocabulary_size ? kDefault : -1;
  }
  if (value == nullptr || value->is_null() || *value == json(-1)) {
    return -1;
  }
  if (!value->is_number_unsigned()) {
    keys.refuse("eos_token_id", "a token id, a list of them or null", shown(*value));
  }
  // A token that the head cannot give never ends a text; transformers accepts such a file, and so do we.
  return value->get<std::uint64_t>() < static_cast<std::uint64_t>(vocabulary_size) ? value->get<std::int64_t>() : -1;
}

std::int64_t elements(const WeightSpec& weight) {
  std::int64_t count = 1;
  for (const std::int64_t dimension : weight.shape) {
    count *= dimension;
  }
  return count;
}

void append_linear(std::vector<WeightSpec>& weights, const std::string& name, std::int64_t rows, std::int64_t columns) {
  weights.push_back({name + ".weight", {rows, columns}});
  weights.push_back({name + ".bias", {rows}});
}

void append_norm(std::vector<WeightSpec>& weights, const std::string& name, std::int64_t width) {
  weights.push_back({name + ".weight", {width}});
  weights.push_back({name + ".bias", {width}});
}

// The weights of layer `index`.
void append_layer(std::vector<WeightSpec>& weights, const ModelConfig& config, std::int64_t index) {
  const std::string layer = fmt::format("transformer.h.{}", index);
  const std::int64_t width = config.hidden_size;
  append_norm(weights, layer + ".ln_1", width);
  append_linear(weights, layer + ".attn.c_attn", width + config.kv_width(), width);
  append_linear(weights, layer + ".attn.c_proj", width, width);
  append_norm(weights, layer + ".ln_2", width);
  append_linear(weights, layer + ".mlp.c_fc", config.intermediate_size, width);
  append_linear(weights, layer + ".mlp.c_proj", width, config.intermediate_size);
}

}  // namespace

ModelConfig parse_model_config(std::string_view text, const std::string& file_name) {
  const json object = parse_json_object(text, file_name);
  const Keys keys(object, file_name);
  check_family(keys);

  ModelConfig config{.family = std::string(kFamily)};
  config.layers = keys.dimension({"n_layer", "num_hidden_layers"}, 12, kMaxLayers);
  config.hidden_size = keys.dimension({"n_embd", "hidden_size"}, 768, kMaxWidth);
  config.heads = keys.dimension({"n_head", "num_attention_heads"}, 12, kMaxWidth);
  config.positions = keys.dimension({"n_positions", "max_position_embeddings"}, 1024, kMaxRows);
  config.vocabulary_size = keys.dimension({"vocab_size"}, 50257, kMaxRows);
  const json* inner = keys.find({"n_inner"});
  config.intermediate_size =
      inner == nullptr || inner->is_null() ? 4 * config.hidden_size : keys.dimension({"n_inner"}, 0, kMaxIntermediate);
  if (config.hidden_size % config.heads != 0) {
    keys.refuse("n_embd", fmt::format("a multiple of n_head ({})", config.heads), std::to_string(config.hidden_size));
  }
  config.head_dim = config.hidden_size / config.heads;
  config.kv_heads = keys.flag("multi_query", true) ? 1 : config.heads;
  config.layer_norm_epsilon = epsilon(keys);
  config.activation = activation(keys);
  config.scale_attention_weights = keys.flag("scale_attn_weights", true);
  config.attention_softmax_in_fp32 = keys.flag("attention_softmax_in_fp32", true);
  config.scale_attention_softmax_in_fp32 = keys.flag("scale_attention_softmax_in_fp32", true);
  config.eos_token_id = eos_token(keys, config.vocabulary_size);
  return config;
}

ModelConfig load_model_config(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "config.json";
  return parse_model_config(read_text_file(file, kMaxConfigBytes), file.string());
}

std::string config_json(const ModelConfig& config) {
  nlohmann::ordered_json object;
  object["architectures"] = {"GPTBigCodeForCausalLM"};
  object["model_type"] = config.family;
  object["n_layer"] = config.layers;
  object["n_embd"] = config.hidden_size;
  object["n_head"] = config.heads;
  object["n_inner"] = config.intermediate_size;
  object["n_positions"] = config.positions;
  object["vocab_size"] = config.vocabulary_size;
  object["activation_function"] = config.activation == Activation::gelu_tanh ? "gelu_pytorch_tanh" : "gelu";
  object["layer_norm_epsilon"] = config.layer_norm_epsilon;
  object["multi_query"] = config.kv_heads == 1;
  object["scale_attn_weights"] = config.scale_attention_weights;
  object["attention_softmax_in_fp32"] = config.attention_softmax_in_fp32;
  object["scale_attention_softmax_in_fp32"] = config.scale_attention_softmax_in_fp32;
  object["tie_word_embeddings"] = true;
  for (const char* key : {"bos_token_id", "eos_token_id"}) {
    object[key] = config.eos_token_id < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(config.eos_token_id);
  }
  return object.dump(2) + "\n";
}

std::vector<WeightSpec> weight_specs(const ModelConfig& config) {
  std::vector<WeightSpec> weights;
  weights.push_back({"transformer.wte.weight", {config.vocabulary_size, config.hidden_size}});
  weights.push_back({"transformer.wpe.weight", {config.positions, config.hidden_size}});
  for (std::int64_t i = 0; i < config.layers; ++i) {
    append_layer(weights, config, i);
  }
  append_norm(weights, "transformer.ln_f", config.hidden_size);
  return weights;
}

std::int64_t parameter_count(const ModelConfig& config) {
  std::int64_t count = 0;
  for (const WeightSpec& weight : weight_specs(config)) {
    count += elements(weight);
  }
  return count;
}

}  // namespace decodelab
