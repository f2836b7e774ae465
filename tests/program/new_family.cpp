// A model family that nobody has, linked into the program as decodelab_new_family: what stands here is all that a new
// family needs. Llama's parts with norms over heads, attention and MLP side by side, and windows in the later layers.
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/families/llama.h"

namespace decodelab {
namespace model_families {
namespace {

constexpr LlamaDefaults kPatchworkDefaults{};

void read_patchwork(const ConfigKeys& keys, ModelConfig& config) {
  read_llama_keys(keys, kPatchworkDefaults, config);
  config.qk_norm = config.parallel_residual = true;
  read_window_of_later_layers(keys, config);
}

void write_patchwork(const ModelConfig& config, nlohmann::ordered_json& object) {
  object["architectures"] = {"PatchworkForCausalLM"};
  write_llama_keys(config, object);
}

std::vector<SyntheticModel> synthetic_patchwork() {
  ModelConfig config = llama_config({.vocabulary_size = 4096,
                                     .hidden_size = 128,
                                     .intermediate_size = 320,
                                     .layers = 3,
                                     .heads = 4,
                                     .kv_heads = 2,
                                     .head_dim = 32,
                                     .positions = 512,
                                     .tied_head = true,
                                     .eos_token_id = 0},
                                    {.theta = 10000, .dims = 32}, 1e-6);
  config.family = "patchwork";
  config.qk_norm = config.parallel_residual = true;
  return {{.name = "patchwork-tiny", .config = std::move(config)}};
}

const Family& patchwork() {
  static constexpr Family kFamily{.model_type = "patchwork",
                                  .prefix = "model.",
                                  .read = read_patchwork,
                                  .write = write_patchwork,
                                  .roles = roles_of_llama,
                                  .ignores = is_table_of_llama,
                                  .synthetic = synthetic_patchwork};
  return kFamily;
}

}  // namespace

const Family& llama();

}  // namespace model_families

/// Takes the place of the list that the build makes of engine/families: for a file there, nothing more would be needed.
std::span<const Family* const> families() {
  static const std::array<const Family*, 2> all{&model_families::llama(), &model_families::patchwork()};
  return all;
}

}  // namespace decodelab
