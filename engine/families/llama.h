// What the families that are built like Llama share: keys of config.json, and names of weights.
#pragma once

#include <string_view>
#include <vector>

#include "engine/checkpoint/family.h"
#include "engine/checkpoint/gguf_model.h"

namespace decodelab::model_families {

/// Defaults that differ among the classes of Hugging Face Transformers.
struct LlamaDefaults {
  std::int64_t vocabulary_size = 32000;
  std::int64_t hidden_size = 4096;
  std::int64_t intermediate_size = 11008;
  std::int64_t layers = 32;
  std::int64_t heads = 32;
  std::int64_t kv_heads = 0;  ///< 0: as many as heads.
  std::int64_t head_dim = 0;  ///< 0: hidden_size / heads.
  std::int64_t positions = 2048;
  double rotary_theta = 10000;
  bool tied_head = false;
  std::int64_t eos_token_id = 2;
};

/// Returns the configuration of such a model with rotary positions in every layer.
ModelConfig llama_config(const LlamaDefaults& shape, const RotaryRule& rotary, double norm_epsilon);
/// Reads the keys that all of them have: dimensions, RMS norms, gated MLP, rotary positions in every layer.
void read_llama_keys(const ConfigKeys& keys, const LlamaDefaults& defaults, ModelConfig& config);
/// Reads Qwen's `use_sliding_window`, `sliding_window` and `max_window_layers`: layers from that one on see a window.
void read_window_of_later_layers(const ConfigKeys& keys, ModelConfig& config);
/// Writes what read_llama_keys() reads, all but the name of the class.
void write_llama_keys(const ModelConfig& config, nlohmann::ordered_json& object);
/// Returns the weights `model.layers.N.self_attn.{q,k,v,o}_proj`, `mlp.{gate,up,down}_proj` and so on, with the biases
/// and norms that `config` has.
std::vector<RoleSpec> roles_of_llama(const ModelConfig& config);
/// Returns how they are stored in GGUF files, all but the architecture. Source: llama.cpp, gguf-py/gguf/constants.py.
void gguf_config_of_llama(const GgufFile& file, const std::string& prefix, nlohmann::ordered_json& object);
std::string stored_name_of_llama(std::string_view gguf_name);

/// Returns whether a stored tensor is a table that is computed: rotary frequencies.
bool is_table_of_llama(std::string_view stored);

}  // namespace decodelab::model_families
