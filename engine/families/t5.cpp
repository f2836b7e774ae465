// T5 and FLAN-T5: an encoder reads the prompt, and a decoder attends to it; positions are a bias of the scores. Keys,
// defaults and names are those of Hugging Face's T5Config and T5ForConditionalGeneration.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/family.h"

namespace decodelab::model_families {
namespace {

/// The model knows no limit of positions; this is the engine's, for tables that it makes.
constexpr std::int64_t kPositions = 16384;
constexpr std::string_view kGated = "gated-";

void read_t5(const ConfigKeys& keys, ModelConfig& config) {
  EncoderRecipe encoder{.layers = keys.dimension({"num_layers", "num_hidden_layers"}, 6, kMaxLayers)};
  config.layers = keys.dimension_or_null({"num_decoder_layers"}, encoder.layers, kMaxLayers);
  config.hidden_size = keys.dimension({"d_model", "hidden_size"}, 512, kMaxWidth);
  config.heads = config.kv_heads = keys.dimension({"num_heads", "num_attention_heads"}, 8, kMaxWidth);
  config.head_dim = keys.dimension({"d_kv", "head_dim"}, 64, kMaxWidth);
  config.intermediate_size = keys.dimension({"d_ff"}, 2048, kMaxIntermediate);
  config.vocabulary_size = keys.dimension({"vocab_size"}, 32128, kMaxRows);
  config.positions = kPositions;
  config.norm = NormKind::rms;
  config.norm_epsilon = keys.number({"layer_norm_epsilon"}, 1e-6, 0, 1);
  std::string activation = keys.text("feed_forward_proj", "relu");
  config.gated_mlp = activation.starts_with(kGated);
  if (config.gated_mlp) {
    activation.erase(0, kGated.size());
  }
  if (activation != "gelu" && activation != "relu") {
    keys.refuse("feed_forward_proj", "relu, gelu, gated-relu or gated-gelu", "'" + activation + "'");
  }
  // Of a gated MLP, gelu is the form with tanh.
  const Activation gelu = config.gated_mlp ? Activation::gelu_tanh : Activation::gelu_erf;
  config.activation = activation == "relu" ? Activation::relu : gelu;
  config.scale_attention_weights = false;
  config.attention_softmax_in_fp32 = false;
  config.scale_attention_softmax_in_fp32 = false;
  const RelativeBias bias{.buckets = keys.dimension({"relative_attention_num_buckets"}, 32, kMaxWidth),
                          .most_distance = keys.dimension({"relative_attention_max_distance"}, 128, kMaxRows)};
  if (bias.buckets % 4 != 0) {
    keys.refuse("relative_attention_num_buckets", "a multiple of 4: half are exact, of each direction",
                std::to_string(bias.buckets));
  }
  if (bias.most_distance <= bias.buckets / 2) {
    keys.refuse("relative_attention_max_distance",
                fmt::format("more than half of relative_attention_num_buckets ({})", bias.buckets),
                std::to_string(bias.most_distance));
  }
  config.relative_bias = bias;
  // Checkpoints of the first T5 scale what the head is given; those that say that the head is not tied do not.
  config.tied_head = keys.flag("tie_word_embeddings", true);
  const bool scales = keys.flag("scale_decoder_outputs", config.tied_head);
  config.head_scale = scales ? 1 / std::sqrt(static_cast<double>(config.hidden_size)) : 1;
  config.clamps_fp16 = true;
  if (!keys.has("decoder_start_token_id")) {
    keys.refuse("decoder_start_token_id", "the id that the decoder begins with (T5's is its pad_token_id, 0)", "none");
  }
  encoder.start_token_id = keys.token("decoder_start_token_id", -1, config.vocabulary_size);
  if (encoder.start_token_id < 0) {
    keys.refuse("decoder_start_token_id", "an id of the vocabulary", "another");
  }
  config.encoder = encoder;
  config.eos_token_id = keys.token("eos_token_id", 1, config.vocabulary_size);
}

void write_t5(const ModelConfig& config, nlohmann::ordered_json& object) {
  object["architectures"] = {"T5ForConditionalGeneration"};
  object["is_encoder_decoder"] = true;
  object["num_layers"] = config.encoder->layers;
  object["num_decoder_layers"] = config.layers;
  object["d_model"] = config.hidden_size;
  object["num_heads"] = config.heads;
  object["d_kv"] = config.head_dim;
  object["d_ff"] = config.intermediate_size;
  object["vocab_size"] = config.vocabulary_size;
  object["layer_norm_epsilon"] = config.norm_epsilon;
  const std::string activation = config.activation == Activation::relu ? "relu" : "gelu";
  object["feed_forward_proj"] = config.gated_mlp ? std::string(kGated) + activation : activation;
  object["relative_attention_num_buckets"] = config.relative_bias->buckets;
  object["relative_attention_max_distance"] = config.relative_bias->most_distance;
  object["tie_word_embeddings"] = config.tied_head;
  object["scale_decoder_outputs"] = config.head_scale != 1;
  object["decoder_start_token_id"] = config.encoder->start_token_id;
  object["pad_token_id"] = config.encoder->start_token_id;
}

/// Collects the weights of one stack of blocks, `encoder` or `decoder`.
class Blocks {
 public:
  Blocks(const ModelConfig& config, std::vector<RoleSpec>& roles) : config_(config), roles_(roles) {}

  void norm(const std::string& role, const std::string& stored) {
    const std::vector<std::int64_t> shape{config_.hidden_size};
    roles_.push_back({.role = role + ".weight",
                      .shape = shape,
                      .stored = {{.name = stored + ".weight", .shape = shape, .scales = true}}});
  }
  /// A matrix whose rows are those of all `parts`, `rows` each.
  void matrix(const std::string& role, const std::vector<std::string>& parts, std::int64_t rows, std::int64_t inputs) {
    RoleSpec spec{.role = role + ".weight",
                  .shape = {rows * std::ssize(parts), inputs},
                  .transform = parts.size() == 1 ? Transform::none : Transform::concatenated};
    for (const std::string& part : parts) {
      spec.stored.push_back(
          {.name = part + ".weight", .shape = {rows, inputs}, .deviation = deviation_of(part, inputs)});
    }
    roles_.push_back(std::move(spec));
  }
  void self_attention(const std::string& role, const std::string& stored) {
    const std::string attention = stored + "SelfAttention.";
    norm(role + "attention_norm", stored + "layer_norm");
    matrix(role + "qkv", {attention + "q", attention + "k", attention + "v"}, config_.query_width(),
           config_.hidden_size);
    matrix(role + "attention_out", {attention + "o"}, config_.hidden_size, config_.query_width());
  }
  void cross_attention(const std::string& role, const std::string& stored) {
    const std::string attention = stored + "EncDecAttention.";
    norm(role + "cross_norm", stored + "layer_norm");
    matrix(role + "cross_query", {attention + "q"}, config_.query_width(), config_.hidden_size);
    matrix(role + "cross_key_value", {attention + "k", attention + "v"}, config_.query_width(), config_.hidden_size);
    matrix(role + "cross_out", {attention + "o"}, config_.hidden_size, config_.query_width());
  }
  void mlp(const std::string& role, const std::string& stored) {
    const std::string dense = stored + "DenseReluDense.";
    norm(role + "mlp_norm", stored + "layer_norm");
    matrix(role + "up",
           config_.gated_mlp ? std::vector<std::string>{dense + "wi_0", dense + "wi_1"}
                             : std::vector<std::string>{dense + "wi"},
           config_.intermediate_size, config_.hidden_size);
    matrix(role + "down", {dense + "wo"}, config_.hidden_size, config_.intermediate_size);
  }

 private:
  /// Weights made from a seed are as wide as those that training begins with, as in Transformers: what divides scores
  /// elsewhere is in the queries, and the embedding is not small.
  float deviation_of(std::string_view part, std::int64_t inputs) const {
    if (part == "shared" || part == "lm_head") {
      return 1;
    }
    const auto width = static_cast<float>(part.ends_with("Attention.q") ? inputs * config_.head_dim : inputs);
    return 1 / std::sqrt(width);
  }

  const ModelConfig& config_;
  std::vector<RoleSpec>& roles_;
};

std::vector<RoleSpec> roles_of_t5(const ModelConfig& config) {
  std::vector<RoleSpec> roles;
  Blocks blocks(config, roles);
  const std::string bias = ".block.0.layer.0.SelfAttention.relative_attention_bias";
  blocks.matrix("embedding", {"shared"}, config.vocabulary_size, config.hidden_size);
  for (std::int64_t layer = 0; layer < config.encoder->layers; ++layer) {
    const std::string role = fmt::format("encoder.layers.{}.", layer);
    const std::string stored = fmt::format("encoder.block.{}.layer.", layer);
    blocks.self_attention(role, stored + "0.");
    blocks.mlp(role, stored + "1.");
  }
  blocks.matrix("encoder.relative_bias", {"encoder" + bias}, config.relative_bias->buckets, config.heads);
  blocks.norm("encoder.final_norm", "encoder.final_layer_norm");
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string role = fmt::format("layers.{}.", layer);
    const std::string stored = fmt::format("decoder.block.{}.layer.", layer);
    blocks.self_attention(role, stored + "0.");
    blocks.cross_attention(role, stored + "1.");
    blocks.mlp(role, stored + "2.");
  }
  blocks.matrix("relative_bias", {"decoder" + bias}, config.relative_bias->buckets, config.heads);
  blocks.norm("final_norm", "decoder.final_layer_norm");
  if (!config.tied_head) {
    blocks.matrix("head", {"lm_head"}, config.vocabulary_size, config.hidden_size);
  }
  return roles;
}

/// Old files have the embedding under three names, and a bias that cross-attention does not use.
bool is_no_weight_of_t5(std::string_view stored) {
  return stored == "encoder.embed_tokens.weight" || stored == "decoder.embed_tokens.weight" ||
         stored.ends_with(".EncDecAttention.relative_attention_bias.weight");
}

/// google/flan-t5-small as on the hub.
std::vector<SyntheticModel> synthetic_t5() {
  return {{.name = "flan-t5-small",
           .config = {.family = "t5",
                      .layers = 8,
                      .hidden_size = 512,
                      .heads = 6,
                      .kv_heads = 6,
                      .head_dim = 64,
                      .intermediate_size = 1024,
                      .vocabulary_size = 32128,
                      .positions = kPositions,
                      .norm = NormKind::rms,
                      .norm_epsilon = 1e-6,
                      .activation = Activation::gelu_tanh,
                      .gated_mlp = true,
                      .tied_head = false,
                      .scale_attention_weights = false,
                      .attention_softmax_in_fp32 = false,
                      .scale_attention_softmax_in_fp32 = false,
                      .relative_bias = RelativeBias{.buckets = 32, .most_distance = 128},
                      .encoder = EncoderRecipe{.layers = 8},
                      .clamps_fp16 = true,
                      .eos_token_id = 1}}};
}

}  // namespace

const Family& t5() {
  static constexpr Family kFamily{.model_type = "t5",
                                  .prefix = "",
                                  .read = read_t5,
                                  .write = write_t5,
                                  .roles = roles_of_t5,
                                  .ignores = is_no_weight_of_t5,
                                  .synthetic = synthetic_t5};
  return kFamily;
}

}  // namespace decodelab::model_families
