// What libtorch's products by rounded weights share: their shapes, and what is done beside the kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/checkpoint/model_config.h"
#include "engine/layers/linear.h"
#include "engine/tensor.h"

namespace decodelab {

/// Outputs and inputs come in multiples of these. The kernel for 8 bits does not check it, and reads beyond its
/// operands (libtorch 2.11).
inline constexpr std::int64_t kAtenOutputs = 16;
inline constexpr std::int64_t kAtenInputs = 32;

/// Returns which matrix of a model has another shape, in one sentence; empty where there is none.
inline std::string other_shape(const ModelConfig& config) {
  for (const RoleSpec& role : weight_roles(config)) {
    const bool multiplies = role.shape.size() == 2 && role.role != "positions.weight" &&
                            !role.role.ends_with("relative_bias.weight") &&
                            (role.role != "embedding.weight" || config.tied_head);
    if (multiplies && (role.shape[0] % kAtenOutputs != 0 || role.shape[1] % kAtenInputs != 0)) {
      return "libtorch's kernel takes a multiple of 16 outputs and of 32 inputs, and " + role.role + " is [" +
             std::to_string(role.shape[0]) + ", " + std::to_string(role.shape[1]) + "]";
    }
  }
  return "";
}

/// Multiplies rows by the kernel of a derived class, and adds the bias.
class AtenLinear : public Linear {
 public:
  AtenLinear(const LinearWeights& weights, std::size_t bytes) : bytes_(static_cast<std::int64_t>(bytes)) {
    if (weights.bias != nullptr) {
      bias_ = *weights.bias;
    }
  }

  std::int64_t coded_bytes() const override { return bytes_; }
  at::Tensor forward(const at::Tensor& x, Workspace&) const override {
    at::Tensor y = product(x.reshape({-1, x.size(-1)}).contiguous());
    if (bias_) {
      y.add_(*bias_);
    }
    at::DimVector shape(x.sizes());
    shape.back() = y.size(1);
    return y.view(shape);
  }

 protected:
  /// Returns rows W^T, [n, N]; `rows` is [n, K] without gaps.
  virtual at::Tensor product(const at::Tensor& rows) const = 0;

 private:
  std::int64_t bytes_;
  std::optional<at::Tensor> bias_;
};

}  // namespace decodelab
