// What an encoder made of the prompts: the keys and values that the layers of a decoder attend to, and never change.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/layers/row_part.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/step_tensors.h"
#include "engine/tensor.h"

namespace decodelab {

/// Holds B prompts of E tokens at most. W = 2 * kv_heads * head_dim, keys first.
class EncodedPrompts final : public RowPart {
 public:
  /// Takes [B, E, W] of each layer of the decoder, of prompts of these lengths.
  EncodedPrompts(std::vector<at::Tensor> layers, std::vector<std::int64_t> lengths);

  /// Returns all keys and values of a layer, as views: [B, E, W / 2] each. What lies past a row's length is finite.
  KeysValues held(std::int64_t layer) const;
  /// Returns what attention is told of one query a row: it sees all keys of its prompt, as if it had been its last
  /// token.
  const StepRows& rows() const { return rows_; }
  const std::vector<at::Tensor>& layers() const { return layers_; }
  const std::vector<std::int64_t>& lengths() const { return lengths_; }
  std::int64_t bytes() const;

  void select(const std::vector<std::int64_t>& rows) override;
  void append(RowPart& other) override;
  /// Does nothing: what a decoder forgets, its prompt keeps.
  void truncate(std::int64_t, std::int64_t) override {}

 private:
  StepRows rows_of_queries() const;

  std::vector<at::Tensor> layers_;
  std::vector<std::int64_t> lengths_;
  StepRows rows_;
};

}  // namespace decodelab
