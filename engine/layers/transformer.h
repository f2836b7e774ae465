// A transformer cut into the segments around attention.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/checkpoint/model_config.h"

namespace at {
class Tensor;
}

namespace decodelab {

class Attention;
class EncodedPrompts;
class KvCache;
class Workspace;
class PreparedWeights;
class Weights;
struct LayerSlots;
struct Projected;
struct ResidualStream;
struct ForwardStep;

/// Says what an attention site attends to: the keys and values of a layer, which it appends to, or those that the
/// encoder left for the layer.
struct AttentionSite {
  std::int64_t layer = 0;
  bool crosses = false;
  bool writes = false;  ///< before() writes the keys and values itself, into a room that it is given.
};

/// Holds the layers of a model. Its attention sites are the places where a step attends; a decoder alone has one a
/// layer, one with an encoder two. Letters as in ModelConfig; B rows, T tokens. All tensors are in the model's dtype on
/// its device.
class Transformer {
 public:
  virtual ~Transformer() = default;

  /// Returns the number of attention sites.
  virtual std::int64_t sites() const = 0;
  virtual AttentionSite site(std::int64_t index) const { return {.layer = index}; }
  /// Returns the embeddings of ids [B, T] int64: [B, T, d], with no addend.
  virtual ResidualStream embed(const at::Tensor& token_ids, const ForwardStep& step) const = 0;
  /// Runs all that precedes the attention of `site`: -> query [B, T, H * k], key_value [B, T, 2 * G * k], undefined at
  /// a site that crosses, and where they were written into the step's room.
  virtual Projected before(std::int64_t site, ResidualStream& stream, const ForwardStep& step) const = 0;
  /// Runs all that follows it up to the next site or the last norm; `attended` is [B, T, H * k].
  virtual void after(std::int64_t site, ResidualStream& stream, const at::Tensor& attended,
                     const ForwardStep& step) const = 0;
  /// Returns what is added to the scores of `site` over the first `keys` keys, broadcast to [B, H, T, keys]; undefined
  /// where nothing is.
  virtual at::Tensor score_bias(std::int64_t site, std::int64_t keys, const ForwardStep& step) const;
  /// Runs the encoder on the ids [B, E] of prompts, [1, S] where rows are packed, and returns the keys and values that
  /// each layer of the decoder attends to. Throws std::logic_error for a decoder alone.
  virtual std::unique_ptr<EncodedPrompts> encode(const at::Tensor& token_ids, const Attention& attention,
                                                 const ForwardStep& step) const;
  /// Runs the last norm: [R, d] -> [R, d].
  virtual at::Tensor last_norm(const at::Tensor& hidden, Workspace& workspace) const = 0;
  /// Runs the language-model head behind it: [R, d] -> logits [R, V].
  virtual at::Tensor logits(const at::Tensor& normed, Workspace& workspace) const = 0;
  /// Runs both, and counts the rows.
  at::Tensor head(const at::Tensor& hidden, Workspace& workspace) const;

  virtual const ModelConfig& config() const = 0;
};

/// Runs all layers on the step's token ids [B, T], appends to `cache` without advancing it, and returns the hidden
/// states before the last norm, [B, T, d]. With packed rows both are [1, S, ..], where S counts the real tokens of all
/// rows.
at::Tensor forward(const Transformer& transformer, const Attention& attention, KvCache& cache,
                   const at::Tensor& token_ids, const ForwardStep& step);

/// Make the transformer that `config` describes, with layers built from `slots`: a decoder alone, or one with an
/// encoder. `weights` must outlive it.
std::unique_ptr<Transformer> make_decoder(const ModelConfig& config, const Weights& weights, const LayerSlots& slots,
                                          PreparedWeights& prepared);
std::unique_ptr<Transformer> make_encoder_decoder(const ModelConfig& config, const Weights& weights,
                                                  const LayerSlots& slots, PreparedWeights& prepared);
std::unique_ptr<Transformer> make_transformer(const ModelConfig& config, const Weights& weights,
                                              const LayerSlots& slots, PreparedWeights& prepared);

}  // namespace decodelab
