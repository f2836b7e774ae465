// The description of a model: the fields of config.json that the engine needs, checked.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/gguf_blocks.h"
#include "engine/checkpoint/rotary_rule.h"
#include "engine/checkpoint/weight_spec.h"
#include "engine/kernels/activation.h"
#include "engine/kernels/norm_kind.h"

namespace decodelab {

/// What layers of one model may differ in.
struct LayerRecipe {
  int rotary = -1;          ///< Index into ModelConfig::rotary; -1: this layer turns nothing.
  std::int64_t window = 0;  ///< A query sees so many keys, its own the last; 0: all.
};

/// Describes the encoder that reads the prompt where a decoder attends to it (Raffel et al. 2019, arXiv:1910.10683).
struct EncoderRecipe {
  std::int64_t layers = 0;
  std::int64_t start_token_id = 0;  ///< The token that the decoder begins with.
};

/// Describes a bias of attention's scores that depends on the distance of query and key. Distances share `buckets`: the
/// smaller half one each, the others by their logarithm up to `most_distance`.
struct RelativeBias {
  std::int64_t buckets = 0;
  std::int64_t most_distance = 0;
};

/// Describes a transformer that decodes: a decoder alone, or one with an encoder.
///
/// Letters used everywhere: N layers, d hidden_size, H heads, G kv_heads, k head_dim, V vocabulary.
struct ModelConfig {
  std::string family;  ///< `model_type` of config.json.
  std::int64_t layers = 0;
  std::int64_t hidden_size = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  ///< 1 for multi-query attention (Shazeer 2019, arXiv:1911.02150).
  std::int64_t head_dim = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t vocabulary_size = 0;
  std::int64_t positions = 0;
  NormKind norm = NormKind::layer;
  double norm_epsilon = 1e-5;
  Activation activation = Activation::gelu_tanh;
  bool gated_mlp = false;  ///< The activation of one product multiplies another (Shazeer 2020, arXiv:2002.05202).
  /// The MLP works on the input of attention's norm, not on attention's output, and both are added to it (GPT-J).
  bool parallel_residual = false;
  bool post_norms = false;  ///< What attention and MLP add to the residual is normed before (Gemma).
  bool qk_norm = false;     ///< Queries and keys are normed head by head before they turn.
  bool qkv_bias = false;    ///< These three are read by families whose checkpoints may have biases or not.
  bool attention_out_bias = false;
  bool mlp_bias = false;
  bool tied_head = true;                  ///< The head is the token embedding.
  double embedding_scale = 1;             ///< Token embeddings are multiplied by it, rounded to their dtype.
  bool scale_attention_weights = true;    ///< Scores are divided by sqrt(k), or by the square root of the next.
  double query_scalar = 0;                ///< 0: k.
  bool attention_softmax_in_fp32 = true;  ///< 16-bit scores are raised to fp32 before the softmax.
  /// 16-bit scores are divided by (layer + 1) before they are raised to fp32, and multiplied again after.
  bool scale_attention_softmax_in_fp32 = true;
  /// The ways in which layers turn queries and keys by their positions; recipes refer to them. None: positions are
  /// learned.
  std::vector<RotaryRule> rotary;
  std::vector<LayerRecipe> recipes;           ///< One a layer, or none where no layer has anything of its own.
  std::optional<RelativeBias> relative_bias;  ///< Of all layers of the decoder, and another one of the encoder's.
  std::optional<EncoderRecipe> encoder;  ///< Its layers have the decoder's shapes, and attend to each other's tokens.
  double head_scale = 1;                 ///< What the last norm gives is multiplied by it.
  bool clamps_fp16 = false;        ///< Sums of a layer that fp16 cannot hold become the largest numbers that it can.
  std::int64_t eos_token_id = -1;  ///< -1: the model has none.
  std::vector<std::int64_t> later_eos_token_ids;  ///< What ends a text besides (chat models have several).
  std::vector<GgufType> stored_types;  ///< Of the matrices in a GGUF file, each once; empty for another checkpoint.

  std::int64_t query_width() const { return heads * head_dim; }
  std::int64_t kv_width() const { return 2 * kv_heads * head_dim; }
  /// Returns whether some layer's queries see fewer keys than a row may hold.
  bool has_windows() const {
    return std::ranges::any_of(
        recipes, [&](const LayerRecipe& recipe) { return recipe.window > 0 && recipe.window < positions; });
  }
  /// Returns the tokens that a row of the cache holds after the prefill of a prompt.
  std::int64_t held_after_prefill(std::int64_t prompt) const { return encoder ? 1 : prompt; }
  LayerRecipe recipe(std::int64_t layer) const {
    return recipes.empty() ? LayerRecipe{} : recipes.at(static_cast<std::size_t>(layer));
  }
  /// Returns all tokens that end a text.
  std::vector<std::int64_t> eos_token_ids() const {
    std::vector<std::int64_t> ids = later_eos_token_ids;
    if (eos_token_id >= 0) {
      ids.insert(ids.begin(), eos_token_id);
    }
    return ids;
  }
  /// Returns the factor that scores are multiplied by.
  double attention_scale() const {
    return scale_attention_weights ? 1.0 / std::sqrt(query_scalar > 0 ? query_scalar : static_cast<double>(head_dim))
                                   : 1.0;
  }
};

/// Parses the text of a config.json; `file_name` is only for messages.
///
/// Throws std::invalid_argument, naming the file and the key, for text that is no JSON object, an unsupported
/// `model_type` (with the supported ones), a missing or non-positive or absurdly large dimension, and for what the
/// engine would compute otherwise: an unknown activation, cross-attention, quantized weights. Defaults where a key is
/// absent, and aliases of keys, are those of the family's class in Hugging Face Transformers. Keys that do not change
/// what is computed (dropout, ...) are not read.
ModelConfig parse_model_config(std::string_view text, const std::string& file_name);

/// Reads `path`/config.json, or the metadata of `path` where it is a GGUF file. Throws as parse_model_config, and
/// std::invalid_argument when the file is missing.
ModelConfig load_model_config(const std::filesystem::path& path);

/// Returns the text of a config.json with these fields, as transformers and load_model_config read it.
std::string config_json(const ModelConfig& config);

/// Returns all weights of a configuration by role, in file order.
std::vector<RoleSpec> weight_roles(const ModelConfig& config);

/// Returns the tensors that a checkpoint stores for them, in file order. A head that is tied to the embedding is not
/// listed.
std::vector<WeightSpec> weight_specs(const ModelConfig& config);

/// Returns the number of parameters, a tied head counted once.
std::int64_t parameter_count(const ModelConfig& config);

}  // namespace decodelab
