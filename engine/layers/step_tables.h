// Positions and masks of steps whose rows have one length, as views of tables that are made once.
#pragma once

#include <cstdint>

#include "engine/tensor.h"

namespace decodelab {

class StepTables {
 public:
  /// Makes the tables for positions [0, `positions`) of a model.
  StepTables(std::int64_t positions, at::Device device)
      : positions_(at::arange(positions, at::TensorOptions(at::kLong).device(device))),
        visible_(at::cat({at::ones({positions}, at::TensorOptions(at::kBool).device(device)),
                          at::zeros({positions}, at::TensorOptions(at::kBool).device(device))})) {}

  /// Returns the positions `past` .. `past + tokens - 1`, [1, tokens] int64.
  at::Tensor position_ids(std::int64_t past, std::int64_t tokens) const {
    return positions_.narrow(0, past, tokens).unsqueeze(0);
  }
  /// Returns a mask that is true for the keys 0 .. `past`, [1, 1, keys] bool; `keys` is at most the number of
  /// positions.
  at::Tensor visible(std::int64_t past, std::int64_t keys) const {
    return visible_.narrow(0, positions_.size(0) - 1 - past, keys).view({1, 1, keys});
  }
  std::int64_t positions() const { return positions_.size(0); }

 private:
  at::Tensor positions_;
  at::Tensor visible_;  ///< As many ones as there are positions, then as many zeros.
};

}  // namespace decodelab
