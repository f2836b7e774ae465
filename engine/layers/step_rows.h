// The rows of one forward step: what each row already holds, what it adds, and which keys its queries may see.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "engine/layers/layer_slots.h"
#include "engine/layers/step_tables.h"
#include "engine/tensor.h"

namespace decodelab {

/// Describes the rows of a step that is recorded once and replayed, in which each row adds the same number of tokens,
/// padding included. The host knows only how many rows there are and how many keys attention is shown. All tensors are
/// on the device, and are read when the step runs.
struct RecordedRows {
  const at::Tensor& held;       ///< [B] int64: keys that each row holds.
  const at::Tensor& row_index;  ///< [B] int64: 0 .. B - 1.
  const at::Tensor& key_index;  ///< [K] int64: 0 .. K - 1, K >= `shown_keys`.
  std::int64_t shown_keys = 0;  ///< Keys that attention is shown; more than any row holds.
  std::int64_t tokens = 1;      ///< T, that each row adds; its slots are free in every row.
};

/// Describes B rows that add up to T tokens each in one step. Rows start at key 0; a row that adds fewer than T tokens
/// is padded at its end.
///
/// Because rows are aligned at their start, causal visibility alone keeps every real query from every padding key:
/// query t of row b stands at position past[b] + t and sees the keys 0 .. past[b] + t.
class StepRows {
 public:
  /// Row b holds `past[b]` keys and adds `added[b]` >= 0 real tokens, at least one row some. `positions` is the model's
  /// limit: positions of padding are clamped to it. Rows of different lengths go through the layers in `layout`;
  /// `tables`, if any, must outlive the step.
  StepRows(std::vector<std::int64_t> past, std::vector<std::int64_t> added, std::int64_t positions, at::Device device,
           PrefillLayout layout = PrefillLayout::padded, const StepTables* tables = nullptr);
  /// Makes every query see all keys of its row, whatever comes after it: what an encoder does.
  void see_all_keys() { sees_all_keys_ = true; }
  bool sees_all_keys() const { return sees_all_keys_; }
  /// Describes a recorded step.
  explicit StepRows(const RecordedRows& recorded);

  std::int64_t batch_size() const { return static_cast<std::int64_t>(added_.size()); }
  /// Returns T, the most tokens that a row adds.
  std::int64_t tokens() const { return tokens_; }
  /// Returns L, the most keys that a row holds after this step.
  std::int64_t keys() const { return keys_; }
  /// Returns the keys that each row holds before this step. Throws std::logic_error for a recorded step, whose lengths
  /// the host does not know.
  const std::vector<std::int64_t>& past() const;
  /// Returns the keys that each row holds before this step, [B] int64 on the device; made at the first call of a step.
  /// Its stride is 0 where one number serves all rows.
  const at::Tensor& held_on_device() const;
  /// Returns the keys that a row holds before each of `queries` of its own, row after row, [B * queries]; behind the
  /// row's last token as before that. Queries of a decoder are as many as its tokens, and more where the rows are an
  /// encoder's. Made at the first call of a step, as is the same on the device.
  const std::vector<std::int64_t>& held_before_queries(std::int64_t queries) const;
  const at::Tensor& held_before_queries_on_device(std::int64_t queries) const;
  const std::vector<std::int64_t>& added() const { return added_; }
  /// Returns whether all rows hold the same number of keys and add the same number of tokens.
  bool uniform() const { return uniform_; }
  /// Returns whether rows of different lengths go through the layers one behind the other, [1, S, ..].
  bool packs() const { return packs_; }
  /// Returns whether every row adds a token.
  bool all_add() const;
  at::Device device() const { return device_; }
  /// Returns the number of padding tokens that go through the layers, over all rows.
  std::int64_t padding_tokens() const;

  /// Converts [1, S, ..] to [B, T, ..] with zero padding where rows go through the layers packed; otherwise returns `x`
  /// itself.
  at::Tensor padded(const at::Tensor& x) const;
  /// Converts [B, T, ..] to [1, S, ..] where rows go through the layers packed; otherwise returns `x` itself.
  at::Tensor packed(const at::Tensor& x) const;

  /// Returns position ids, [B, T] int64 (uniform: [1, T]; packed: [1, S]).
  const at::Tensor& position_ids() const;
  /// Returns a mask that is true where a query may see a key, [B, T, K] bool (uniform: [1, T, K]). K = `held_keys` >= L
  /// is the number of keys that the cache returned. Of a `window` a query sees so many keys, its own the last. Made at
  /// the first call of a step.
  at::Tensor visible(std::int64_t held_keys, std::int64_t window = 0) const;

  /// Says where the real tokens of a ragged step go: `source` indexes [B * T], `row` and `position` index the cache;
  /// each is [sum of added] int64.
  struct Scatter {
    at::Tensor source;
    at::Tensor row;
    at::Tensor position;
  };
  const Scatter& scatter() const;

  /// Returns the index of each row's first token in [B * T], or in [S] where rows are packed.
  std::vector<std::int64_t> first_token_index() const;
  /// Returns the index of each row's last real token in [B * T], or in [S] where rows are packed; [B] int64. That of a
  /// row that adds none is of another token.
  const at::Tensor& last_token_index() const;

 private:
  at::Tensor to_device(const std::vector<std::int64_t>& values) const;
  at::Tensor make_visible(std::int64_t held_keys, std::int64_t window) const;

  std::vector<std::int64_t> past_;
  std::vector<std::int64_t> added_;
  std::int64_t positions_;
  at::Device device_;
  const StepTables* tables_;
  at::Tensor key_index_;  ///< Set in a recorded step only.
  bool sees_all_keys_ = false;
  bool packs_ = false;  ///< Rows have different lengths and go through the layers without padding.
  std::int64_t tokens_ = 0;
  std::int64_t keys_ = 0;
  bool uniform_ = true;
  mutable at::Tensor held_on_device_;
  mutable std::map<std::int64_t, std::vector<std::int64_t>> held_before_queries_;  ///< By their number.
  mutable std::map<std::int64_t, at::Tensor> held_before_queries_on_device_;
  mutable at::Tensor position_ids_;
  mutable std::map<std::pair<std::int64_t, std::int64_t>, at::Tensor> visible_;  ///< By keys and window.
  mutable at::Tensor last_token_index_;
  mutable Scatter scatter_;
};

}  // namespace decodelab
