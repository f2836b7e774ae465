// The keys and values of one layer: where they lie, how they are written and how they move to a larger place.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/layers/layer_slots.h"
#include "engine/layers/step_tensors.h"
#include "engine/tensor.h"

namespace decodelab {

class StepRows;

/// One layer's storage, [B, slots, W] in one tensor or [B, slots, W / 2] in two; W = 2 * kv_heads * head_dim, keys
/// first. What lies past a row's length is finite, because attention may multiply it by zero weights and 0 * NaN is
/// NaN.
class KvStorage {
 public:
  explicit KvStorage(KvLayout layout) : layout_(layout) {}

  /// Slots of a row; 0 until something was allocated.
  std::int64_t slots() const { return planes_.empty() ? 0 : planes_.front().size(1); }
  /// Rows that there is room for; 0 until something was allocated.
  std::int64_t rows() const { return planes_.empty() ? 0 : planes_.front().size(0); }
  std::int64_t bytes() const;
  /// Where the planes begin.
  void add_addresses(std::vector<const void*>& all) const;

  /// Moves to `slots` slots, of which the first `kept` keep what they hold; counted as copied_cache_bytes. `like` is
  /// [B, T, W].
  void reallocate(const at::Tensor& like, std::int64_t slots, std::int64_t kept);
  /// The reference's way of growing, for rows of one length: one tensor after the other, a copy of both.
  void concatenate(const at::Tensor& key_value);
  /// Writes the step's real tokens, `key_value` being [B, T, W], into slots that are there.
  void write(const at::Tensor& key_value, const StepRows& rows) const;
  /// All slots of all rows, as views, for a layer that writes there itself; counted as a write.
  KvRoom room() const;
  /// The first `keys` slots of the first `rows` rows, as views.
  KeysValues view(std::int64_t keys, std::int64_t rows) const;
  /// Gives back all but the first `slots` slots.
  void shrink(std::int64_t slots);
  /// Forgets all but the first `rows` rows.
  void keep_rows(std::int64_t rows);
  /// Keeps these rows, in this order, and `slots` slots of each.
  void select_rows(const at::Tensor& index, std::int64_t slots);
  /// Puts the rows of `other` under its own; both then have `slots` slots. Frees what it takes.
  void append_rows(KvStorage& other, std::int64_t slots);
  /// Copies row i of `other`, or as much of it as there are slots here, into row places[i]. Frees what it takes.
  void put_rows(const std::vector<std::int64_t>& places, KvStorage& other);

 private:
  /// The parts of a step's [B, T, W] that go into each plane.
  std::vector<at::Tensor> parts_of(const at::Tensor& key_value) const;

  KvLayout layout_;
  std::vector<at::Tensor> planes_;
};

}  // namespace decodelab
