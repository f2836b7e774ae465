// What tokens are looked up in: the interface of a slot, and its reference.
#pragma once

#include <functional>
#include <memory>

#include "engine/layers/layer_slots.h"

namespace at {
class Tensor;
}
namespace c10 {
struct TensorOptions;
}

namespace decodelab {

/// Refers to the token embedding, [V, d], which outlives every Embedding.
struct EmbeddingWeights {
  std::int64_t width = 0;                       ///< d
  std::function<c10::TensorOptions()> options;  ///< The model's dtype and device.
  /// Returns the table in memory.
  std::function<const at::Tensor&()> load;
  /// Copies rows from the checkpoint's file: ids [n] on a CPU, rows [n, d] in the model's dtype.
  std::function<void(const at::Tensor& ids, const at::Tensor& rows)> read_rows;
};

class Embedding {
 public:
  virtual ~Embedding() = default;

  /// Returns the rows of ids [.., T]: [.., T, d], the caller's own to write into.
  virtual at::Tensor looked_up(const at::Tensor& ids, Workspace& workspace) const = 0;
};

/// The reference: the table lies in memory.
std::unique_ptr<Embedding> make_table_embedding(const EmbeddingWeights& weights);

/// Returns the rows of `table` for ids [.., T]: [.., T, d].
at::Tensor looked_up(const at::Tensor& table, const at::Tensor& ids, Workspace& workspace);

}  // namespace decodelab
