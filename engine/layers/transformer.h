// A decoder-only transformer cut into the segments around attention, with one source file per model family.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/checkpoint/model_config.h"

namespace at {
class Tensor;
}

namespace decodelab {

class Attention;
class KvCache;
class Workspace;
class StepRows;
class PreparedWeights;
class Weights;
struct LayerSlots;
struct Projected;
struct ResidualStream;

/// Holds the layers of one model family. Letters as in ModelConfig; B rows, T tokens. All tensors are in the model's
/// dtype on its device.
class Transformer {
 public:
  virtual ~Transformer() = default;

  /// Returns the token and position embeddings: ids [B, T] int64 -> [B, T, d], with no addend.
  virtual ResidualStream embed(const at::Tensor& token_ids, const StepRows& rows, Workspace& workspace) const = 0;
  /// Runs the first norm and the projections of `layer`: -> query [B, T, H * k], key_value [B, T, 2 * G * k].
  virtual Projected before_attention(std::int64_t layer, ResidualStream& stream, Workspace& workspace) const = 0;
  /// Runs the output projection, residual, norm and MLP of `layer`; `attended` is [B, T, H * k].
  virtual void after_attention(std::int64_t layer, ResidualStream& stream, const at::Tensor& attended,
                               Workspace& workspace) const = 0;
  /// Runs the last norm and the language-model head: [R, d] -> logits [R, V].
  virtual at::Tensor head(const at::Tensor& hidden, Workspace& workspace) const = 0;

  virtual const ModelConfig& config() const = 0;
};

/// Runs all layers on the step's token ids [B, T], appends to `cache` without advancing it, and returns the hidden
/// states before the last norm, [B, T, d]. With packed rows both are [1, S, ..], where S counts the real tokens of all
/// rows.
at::Tensor forward(const Transformer& transformer, const Attention& attention, KvCache& cache,
                   const at::Tensor& token_ids, const StepRows& rows, Workspace& workspace);

/// Makes GPTBigCode (SantaCoder, StarCoder): learned positions, pre-norm blocks, multi-query or multi-head attention,
/// tied head.
std::unique_ptr<Transformer> make_gpt_bigcode(const ModelConfig& config, const Weights& weights,
                                              const LayerSlots& slots, PreparedWeights& prepared);

/// Makes the transformer of `config.family`, with layers built from `slots`. `weights` must outlive it.
std::unique_ptr<Transformer> make_transformer(const ModelConfig& config, const Weights& weights,
                                              const LayerSlots& slots, PreparedWeights& prepared);

}  // namespace decodelab
