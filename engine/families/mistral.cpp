// Mistral: Llama's structure with a window of keys in every layer. Keys, defaults and names are those of Hugging Face's
// MistralConfig and MistralForCausalLM.
#include <nlohmann/json.hpp>

#include "engine/families/llama.h"

namespace decodelab::model_families {
namespace {

constexpr std::int64_t kMistralWindow = 4096;
constexpr LlamaDefaults kMistralDefaults{.intermediate_size = 14336, .kv_heads = 8, .positions = 131072};

void read_mistral(const ConfigKeys& keys, ModelConfig& config) {
  read_llama_keys(keys, kMistralDefaults, config);
  const bool has_key = keys.find({"sliding_window"}) != nullptr;
  const std::int64_t window = keys.dimension_or_null({"sliding_window"}, has_key ? 0 : kMistralWindow, kMaxRows);
  for (LayerRecipe& recipe : config.recipes) {
    recipe.window = window;
  }
}

void write_mistral(const ModelConfig& config, nlohmann::ordered_json& object) {
  object["architectures"] = {"MistralForCausalLM"};
  write_llama_keys(config, object);
  const std::int64_t window = config.recipe(0).window;
  object["sliding_window"] = window == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(window);
}

std::vector<SyntheticModel> synthetic_mistral() { return {}; }

}  // namespace

const Family& mistral() {
  static constexpr Family kFamily{.model_type = "mistral",
                                  .prefix = "model.",
                                  .read = read_mistral,
                                  .write = write_mistral,
                                  .roles = roles_of_llama,
                                  .ignores = is_table_of_llama,
                                  .synthetic = synthetic_mistral};
  return kFamily;
}

}  // namespace decodelab::model_families
