// The tokens that a step chose, on the host and on the device.
#pragma once

#include "engine/tensor.h"

#include <cstdint>
#include <vector>

namespace decodelab {

/// One token a row, B rows.
struct ChosenTokens {
  std::vector<std::int64_t> host;
  at::Tensor device;  ///< [B, 1] int64: the next step's input ids.
};

}  // namespace decodelab
