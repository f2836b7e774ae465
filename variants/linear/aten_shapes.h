// The shapes that libtorch's products by rounded weights take.
#pragma once

#include <cstdint>
#include <string>

#include "engine/checkpoint/model_config.h"

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

}  // namespace decodelab
