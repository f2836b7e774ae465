// Keys and values of the tokens decoded so far, for every layer of one batch.
#pragma once

#include "engine/checkpoint/safetensors.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace at {
class Tensor;
}

namespace decodelab {

class StepRows;
struct KeysValues;

/// What a cache is made for. Shapes use B sequences, T new tokens and W = 2 * kv_heads * head_dim, keys first; multi-query attention
/// (Shazeer 2019, arXiv:1911.02150) is kv_heads = 1.
struct KvCacheOptions {
  std::int64_t layers = 0;
  std::int64_t batch_size = 0;
  std::int64_t width = 0;       ///< W
  std::int64_t max_tokens = 0;  ///< The most tokens that a row will ever hold: prompt and completion.
  ElementType dtype = ElementType::float32;
  std::string device = "cpu";
};

/// What attention remembers between decode steps. Every row has its own length and starts at key 0.
class KvCache {
 public:
  explicit KvCache(const KvCacheOptions& options);
  virtual ~KvCache() = default;

  /// Adds the real tokens of each row to `layer` and returns all that the layer now holds.
  ///
  /// `key_value` is [B, T, W], on the model's device and in its dtype. The results are [B, rows.keys() or more, W / 2] each, zero
  /// past each row's length, possibly views, and stay valid until the next append to the same layer.
  /// Throws std::length_error when a row would hold more than `max_tokens`.
  virtual KeysValues append(std::int64_t layer, const at::Tensor& key_value, const StepRows& rows) = 0;

  /// Forgets the tokens of `row` from `length` on, in all layers (rejected speculation, rewinding a measurement).
  virtual void truncate(std::int64_t row, std::int64_t length) = 0;

  /// Bytes that are allocated for keys and values now.
  virtual std::int64_t bytes() const = 0;

  /// Ends a step: every layer has appended `rows`.
  void advance(const StepRows& rows);
  /// Tokens that each row holds.
  const std::vector<std::int64_t>& lengths() const { return lengths_; }
  const KvCacheOptions& options() const { return options_; }

 protected:
  void check_append(const StepRows& rows) const;
  void set_length(std::int64_t row, std::int64_t length);

 private:
  KvCacheOptions options_;
  std::vector<std::int64_t> lengths_;
};

/// The reference: each step makes new tensors of just the needed length and copies all that was there (transformers' DynamicCache).
std::unique_ptr<KvCache> make_concatenated_cache(const KvCacheOptions& options);

/// Says how many slots a row gets when `needed` are to be held and `held` are there; at least `needed`.
using CapacityRule = std::function<std::int64_t(std::int64_t needed, std::int64_t held)>;

/// A cache with room to spare: it writes new tokens in place, and allocates and copies only when `rule` is asked for more slots.
/// `initial` slots are allocated with the cache; 0 leaves the first allocation to the first append.
std::unique_ptr<KvCache> make_growing_cache(const KvCacheOptions& options, CapacityRule rule, std::int64_t initial);

}  // namespace decodelab
