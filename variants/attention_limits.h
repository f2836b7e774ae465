// What the models of some families need of attention, and kernels may lack.
#pragma once

#include <string>

#include "engine/checkpoint/model_config.h"

namespace decodelab {

/// Returns why a kernel that adds nothing to scores cannot run a model's attention, in one sentence; empty if it can.
inline std::string score_bias_unsupported(const ModelConfig& config) {
  return config.relative_bias ? "its kernel adds no bias to scores, and this model's positions are one" : "";
}

/// Returns why a kernel that only hides what follows a query cannot run it.
inline std::string plain_attention_unsupported(const ModelConfig& config) {
  return config.has_windows() ? "its kernel sees all keys before a query, and this model's layers see a window of them"
                              : score_bias_unsupported(config);
}

}  // namespace decodelab
