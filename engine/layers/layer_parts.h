// Builds the parts of layers from the weights of their roles, with the implementations of a plan.
#pragma once

#include <memory>
#include <string>

#include "engine/checkpoint/weights.h"
#include "engine/layers/embedding.h"
#include "engine/layers/layer_slots.h"
#include "engine/layers/linear.h"
#include "engine/layers/mlp.h"
#include "engine/layers/prepared_weights.h"
#include "engine/layers/residual_norm.h"
#include "engine/layers/step_tensors.h"
#include "engine/tensor.h"

namespace decodelab {

/// Refers to all that it is made of, which must outlive it. Roles are those of RoleSpec, without `.weight`.
class LayerParts {
 public:
  LayerParts(const ModelConfig& config, const Weights& weights, const LayerSlots& slots, PreparedWeights& prepared)
      : config_(config), weights_(weights), slots_(slots), prepared_(prepared) {}

  NormWeights norm_weights(const std::string& role) const;
  std::unique_ptr<ResidualNorm> norm(const std::string& role) const { return slots_.residual_norm(norm_weights(role)); }
  std::unique_ptr<Linear> linear(const std::string& role) const {
    return slots_.linear(linear_weights(role), prepared_);
  }
  /// Returns a product that ends what attention adds to the residual. Where ranks share the model, what it and mlp()
  /// return is summed over ranks, but where both are added at once: sum_over_ranks() is then called for the sum.
  std::unique_ptr<Linear> linear_to_residual(const std::string& role) const;
  /// Returns the MLP of the layer whose roles begin with `layer`, `layers.3.` for one.
  std::unique_ptr<Mlp> mlp(const std::string& layer) const;
  std::unique_ptr<Embedding> embedding() const;
  /// Returns the head: a weight of its own, or the token embedding.
  std::unique_ptr<Linear> head() const;

 private:
  /// Returns the weights of a product by its role; the bias is in memory, the matrix is read when it is wanted.
  LinearWeights linear_weights(const std::string& role) const;

  const ModelConfig& config_;
  const Weights& weights_;
  const LayerSlots& slots_;
  PreparedWeights& prepared_;
};

/// Sums what attention and MLP add together over ranks; does nothing where `ranks` is null.
void sum_over_ranks(const at::Tensor& addend, Ranks* ranks);

/// Adds what is to be added, and returns the norm of the sum.
at::Tensor add_and_norm(const ResidualNorm& norm, ResidualStream& stream, Workspace& workspace);

}  // namespace decodelab
