// Keys and values of the tokens decoded so far, for every layer of one batch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/kernels/element_type.h"
#include "engine/layers/layer_slots.h"
#include "engine/layers/row_part.h"

namespace at {
class Tensor;
}

namespace decodelab {

class StepRows;
struct KeysValues;
struct KvRoom;

/// What a cache is made for. Shapes use B sequences, T new tokens and W = 2 * kv_heads * head_dim, keys first;
/// multi-query attention (Shazeer 2019, arXiv:1911.02150) is kv_heads = 1.
struct KvCacheOptions {
  std::int64_t layers = 0;
  std::int64_t batch_size = 0;
  std::int64_t width = 0;       ///< W
  std::int64_t max_tokens = 0;  ///< The most tokens that a row will ever hold: prompt and completion.
  std::int64_t positions = 0;   ///< The most that the model can hold.
  KvLayout layout = KvLayout::split;
  KeyMultiple key_multiple = 1;
  std::int64_t spare_rows =
      0;  ///< Rows beyond the batch that a cache allocated at once has room for; nobody reads them.
  ElementType dtype = ElementType::float32;
  std::string device = "cpu";
};

/// What attention remembers between decode steps. Every row has its own length and starts at key 0. What lies past a
/// row's length is finite, because attention may multiply it by weights of zero.
class KvCache : public RowPart {
 public:
  explicit KvCache(const KvCacheOptions& options)
      : options_(options), lengths_(static_cast<std::size_t>(options.batch_size), 0) {}

  /// Adds the real tokens of each row to `layer` and returns all that the layer now holds.
  ///
  /// `key_value` is [B, T, W], or [1, S, W] where rows.packs(), on the model's device and in its dtype. The results are
  /// [B, K, W / 2] each, K = shown_keys(rows), finite past each row's length, possibly views, and stay valid until the
  /// next append to the same layer; a cache of pages returns its pages instead where `reads_pages` says that they can
  /// be read. Throws std::length_error when a row would hold more than `max_tokens`.
  virtual KeysValues append(std::int64_t layer, const at::Tensor& key_value, const StepRows& rows,
                            bool reads_pages = false) = 0;

  /// Makes room for a step's tokens in `layer` and returns where a layer may write them itself, before it calls
  /// written(); undefined where it must call append(): in a cache that grows by concatenation or has pages, and for
  /// rows of different lengths with more than one token. Throws what append() throws.
  virtual KvRoom room(std::int64_t layer, const StepRows& rows) = 0;
  /// Returns what append() does, after the layer has written into its room.
  virtual KeysValues written(std::int64_t layer, const StepRows& rows) const = 0;

  /// Whether keys and values of earlier steps are there. Where they are not, a step is fed all tokens of each row, and
  /// rows are cut to no token before it.
  virtual bool keeps() const { return true; }

  /// Throws what append() throws for these rows, before a step of theirs begins.
  void check_room(const StepRows& rows) const;
  /// Ends a step: every layer has appended `rows`. Rows of padding beyond the batch are left out.
  void advance(const StepRows& rows);
  /// Forgets the tokens of `row` from `length` on, in all layers (rejected speculation, rewinding a measurement): sets
  /// a length, and touches no memory. Throws std::invalid_argument for more tokens than the row holds.
  void truncate(std::int64_t row, std::int64_t length) override;
  /// Gives back the slots that the growth rule would not have made for what rows hold now, so that a measurement finds
  /// the cache as it was before the steps that were taken back.
  virtual void shrink() = 0;
  /// Keeps these rows, in this order: continuous batching's filter, and a fork where a row is named twice. Throws
  /// std::invalid_argument for no row and for rows that are not there.
  void select(const std::vector<std::int64_t>& rows) override = 0;
  /// Puts the rows of `other`, another cache, under its own and leaves it empty: continuous batching's concatenate.
  /// Every row may then hold as many tokens as a row of either could. Throws std::invalid_argument for a cache of
  /// another model or layout.
  void append(RowPart& other) override = 0;

  /// A copy of what `layer` holds, [B, L, W], of rows of one length L. Throws std::logic_error where they are not, or
  /// hold nothing.
  at::Tensor copy_of(std::int64_t layer) const;
  /// A copy of what `row` holds in `layer` of the tokens from `begin` to before `end`, [1, end - begin, W]. Throws
  /// std::invalid_argument for what it does not hold.
  at::Tensor copy_of(std::int64_t layer, std::int64_t row, std::int64_t begin, std::int64_t end) const;
  /// Throws what copy_of() throws for tokens that the row does not hold.
  void check_held(std::int64_t row, std::int64_t begin, std::int64_t end) const;

  /// Keys that attention is shown in a step: those that the longest row needs, in a decode step rounded up to
  /// `key_multiple`.
  std::int64_t shown_keys(const StepRows& rows) const;
  /// Slots that each row has once it holds `tokens`.
  std::int64_t slots_of(std::int64_t tokens) const { return capacity(tokens); }
  /// Tokens that each row holds.
  const std::vector<std::int64_t>& lengths() const { return lengths_; }
  /// Bytes that are allocated for keys and values now.
  virtual std::int64_t bytes() const = 0;
  const KvCacheOptions& options() const { return options_; }
  /// Where the keys and values of all layers lie now: what was recorded for other addresses must not run again.
  virtual std::vector<const void*> addresses() const = 0;
  /// Rows that a step may write: the batch and what spare rows it has.
  virtual std::int64_t writable_rows() const { return options_.batch_size; }

 protected:
  /// Slots that a row of `needed` keys gets at most.
  virtual std::int64_t capacity(std::int64_t needed) const = 0;
  /// Copies what the rows hold in `layer` of the tokens from `begin` to before `end`, [rows, end - begin, W]; `rows`
  /// are there, and hold them.
  virtual at::Tensor copy_rows(std::int64_t layer, std::int64_t first_row, std::int64_t rows, std::int64_t begin,
                               std::int64_t end) const = 0;
  /// Keeps the lengths of these rows. Throws what select() throws.
  void select_lengths(const std::vector<std::int64_t>& rows);
  /// Puts the lengths of `other` under its own, and leaves it without rows.
  void append_lengths(KvCache& other);
  /// Gets ready for rows of `other`. Throws what append() throws.
  void welcome(const KvCache& other);
  std::int64_t longest() const;

  KvCacheOptions options_;
  std::vector<std::int64_t> lengths_;
};

/// The reference: each step makes new tensors of just the needed length and copies all that was there (transformers'
/// DynamicCache).
std::unique_ptr<KvCache> make_concatenated_cache(const KvCacheOptions& options);

/// Says how many slots a row gets when `needed` are to be held; at least `needed`.
using CapacityRule = std::function<std::int64_t(std::int64_t needed)>;

/// A cache with room to spare: it writes new tokens in place, and allocates and copies only when `rule` is asked for
/// more slots.
std::unique_ptr<KvCache> make_growing_cache(const KvCacheOptions& options, CapacityRule rule);

/// A cache of `slots` slots that are there from the start.
std::unique_ptr<KvCache> make_preallocated_cache(const KvCacheOptions& options, std::int64_t slots);

/// A cache of pages of kPageTokens tokens each, which rows share where they hold the same: a fork copies no page but
/// the one that is written next, and rows that join and leave a batch copy none (PagedAttention: Kwon et al. 2023,
/// arXiv:2309.06180). On a CPU.
std::unique_ptr<KvCache> make_paged_cache(const KvCacheOptions& options);

}  // namespace decodelab
