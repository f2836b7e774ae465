// What a model family builds its layers from: the slots of a plan that hold weights.
#pragma once

#include "engine/layers/linear.h"
#include "engine/layers/mlp.h"
#include "engine/layers/residual_norm.h"
#include "engine/plan.h"

namespace decodelab {

struct LayerSlots {
  LinearFactory linear;
  MlpFactory mlp;
  ResidualNormFactory residual_norm;
};

}  // namespace decodelab
