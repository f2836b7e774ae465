// Attention over the cache: the interface of two slots, and their reference.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/layers/attention_shape.h"
#include "engine/layers/layer_slots.h"

namespace at {
class Tensor;
}

namespace decodelab {

class Workspace;
class StepRows;
struct KvPages;

/// Holds the inputs of one layer's attention. B rows, T queries and L keys each; L may exceed rows.keys(), and
/// rows.visible(L) hides the keys beyond it. Letters as in AttentionShape.
struct AttentionCall {
  std::int64_t layer;        ///< Index of the layer; the study's scaling rule depends on it.
  const at::Tensor& query;   ///< [B, T, H * k]; of an attention that reads packed rows [1, S, H * k] where rows.packs()
  const at::Tensor& keys;    ///< [B, L, G * k], finite past each row's length; rows may be strided
  const at::Tensor& values;  ///< [B, L, G * k], likewise
  const StepRows& rows;      ///< Lengths, and the keys that each query sees
  Workspace& workspace;
  const at::Tensor* bias = nullptr;  ///< Added to the scores before the mask, broadcast to [B, H, T, L] (relative
                                     ///< positions, ALiBi); none so far
  std::int64_t window = 0;           ///< A query sees so many keys, its own the last; 0: all that precede it.
  const KvPages* pages = nullptr;  ///< Hold keys and values, which are undefined then, of an attention that reads them.
};

/// Computes softmax(query . keys * scale + bias) . values, for every query over the keys that it may see.
class Attention {
 public:
  virtual ~Attention() = default;

  /// Returns what has the shape and the dtype of `query`. Queries of padding give finite numbers that nobody reads.
  virtual at::Tensor forward(const AttentionCall& call) const = 0;

  /// Returns whether forward() takes the queries of packed rows as they are, without a bias.
  virtual bool reads_packed(const StepRows& /*rows*/) const { return false; }
  /// Returns whether forward() reads the pages of a call.
  virtual bool reads_pages() const { return false; }

  /// Returns the most bytes that forward() holds beyond its inputs and its output, in closed form; `element_bytes` is
  /// the size of the model's dtype.
  virtual std::int64_t workspace_bytes(std::int64_t batch_size, std::int64_t tokens, std::int64_t keys,
                                       std::int64_t element_bytes) const = 0;
};

/// The reference: two batched matrix products with the scores written out between them. Query heads that share a key
/// head are folded into rows, so that multi-query attention never expands keys or values. Scaling and upcast are those
/// of the study's model (scores in 16 bits are divided by layer + 1 in the product and multiplied back in fp32, masked
/// after the upcast).
std::unique_ptr<Attention> make_math_attention(const AttentionShape& shape, const SoftmaxFactory& softmax);

}  // namespace decodelab
