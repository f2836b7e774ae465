// Which queries a piece of prefill attention has, and what each of them sees.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/kernels/attention/prefill_attention.h"

namespace decodelab {

/// Holds some queries of one row and key head, with the heads of a token next to each other: query i of a row and key
/// head is head i % R of token i / R.
class PrefillQueries {
 public:
  /// Takes piece `item`: all rows and key heads have `blocks` pieces each, of `size` queries.
  PrefillQueries(const PrefillAttention& a, std::int64_t item, std::int64_t blocks, std::int64_t size)
      : a_(a),
        head_(item / blocks),
        first_(turned(item % blocks, blocks) * size),
        count_(std::min(size, a.tokens * a.shared_heads - first_)) {}

  /// Returns the number of this pair of a row and a key head.
  std::int64_t head() const { return head_; }
  std::int64_t row() const { return head_ / a_.kv_heads; }
  std::int64_t kv_head() const { return head_ % a_.kv_heads; }
  std::int64_t count() const { return count_; }

  /// Returns how many of the first keys a query sees; it grows from query to query. Queries of padding see what the
  /// row's last token sees.
  std::int64_t seen_by(std::int64_t query) const {
    return std::max<std::int64_t>(1, a_.past[row()] + std::min(token_of(query) + 1, a_.added[row()]));
  }
  /// Returns how many of the first keys a query does not see, since they lie before its window.
  std::int64_t hidden_from(std::int64_t query) const {
    return a_.window > 0 ? std::max<std::int64_t>(0, seen_by(query) - a_.window) : 0;
  }

  /// Return where a query and its result begin, in elements.
  std::int64_t query_offset(std::int64_t query) const {
    return row() * a_.query_row_stride + token_of(query) * a_.query_token_stride + head_of(query) * a_.head_dim;
  }
  std::int64_t out_offset(std::int64_t query) const {
    return ((row() * a_.tokens + token_of(query)) * a_.kv_heads * a_.shared_heads + head_of(query)) * a_.head_dim;
  }

 private:
  /// Early queries see few keys, so blocks are taken from both ends in turn: threads with equally many pieces then have
  /// equally much work.
  static std::int64_t turned(std::int64_t turn, std::int64_t blocks) {
    return turn % 2 == 0 ? turn / 2 : blocks - 1 - turn / 2;
  }
  std::int64_t token_of(std::int64_t query) const { return (first_ + query) / a_.shared_heads; }
  std::int64_t head_of(std::int64_t query) const {
    return kv_head() * a_.shared_heads + (first_ + query) % a_.shared_heads;
  }

  const PrefillAttention& a_;
  std::int64_t head_;
  std::int64_t first_;
  std::int64_t count_;
};

}  // namespace decodelab
