// What every cache shares: lengths, and the rules on rows.
#include "engine/layers/kv_cache.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "base/round_up.h"
#include "engine/layers/step_rows.h"
#include "engine/tensor.h"

namespace decodelab {

void KvCache::advance(const StepRows& rows) {
  for (std::size_t row = 0; row < lengths_.size(); ++row) {
    lengths_[row] += rows.added()[row];
  }
}

void KvCache::truncate(std::int64_t row, std::int64_t length) {
  std::int64_t& held = lengths_.at(static_cast<std::size_t>(row));
  if (length < 0 || length > held) {
    throw std::invalid_argument(fmt::format("row {} holds {} tokens and cannot be cut to {}", row, held, length));
  }
  held = length;
}

at::Tensor KvCache::copy_of(std::int64_t layer) const {
  const std::int64_t length = lengths_.front();
  if (length == 0 || std::ranges::any_of(lengths_, [length](std::int64_t other) { return other != length; })) {
    throw std::logic_error("a cache is copied whole: expected rows of one length above 0");
  }
  return copy_rows(layer, 0, options_.batch_size, 0, length);
}

at::Tensor KvCache::copy_of(std::int64_t layer, std::int64_t row, std::int64_t begin, std::int64_t end) const {
  check_held(row, begin, end);
  return copy_rows(layer, row, 1, begin, end);
}

void KvCache::check_held(std::int64_t row, std::int64_t begin, std::int64_t end) const {
  if (row < 0 || row >= options_.batch_size || begin < 0 || begin >= end ||
      end > lengths_[static_cast<std::size_t>(row)]) {
    throw std::invalid_argument(fmt::format("the cache has no tokens {} to {} of row {} to copy: it has {} rows", begin,
                                            end, row, options_.batch_size));
  }
}

void KvCache::select_lengths(const std::vector<std::int64_t>& rows) {
  std::vector<std::int64_t> lengths;
  for (const std::int64_t row : rows) {
    if (row < 0 || row >= options_.batch_size) {
      throw std::invalid_argument(
          fmt::format("there is no row {} to keep: the batch has the rows 0 to {}", row, options_.batch_size - 1));
    }
    lengths.push_back(lengths_[static_cast<std::size_t>(row)]);
  }
  if (rows.empty()) {
    throw std::invalid_argument("a filter keeps at least one row");
  }
  lengths_ = std::move(lengths);
  options_.batch_size = std::ssize(rows);
}

void KvCache::append_lengths(KvCache& other) {
  options_.batch_size += other.options_.batch_size;
  lengths_.insert(lengths_.end(), other.lengths_.begin(), other.lengths_.end());
  other.lengths_.clear();
  other.options_.batch_size = 0;
}

void KvCache::welcome(const KvCache& other) {
  const KvCacheOptions& there = other.options_;
  if (there.layers != options_.layers || there.width != options_.width || there.layout != options_.layout ||
      there.dtype != options_.dtype || there.device != options_.device) {
    throw std::invalid_argument("two batches can be put together only if they were made by one engine");
  }
  options_.max_tokens = std::max(options_.max_tokens, there.max_tokens);
}

std::int64_t KvCache::shown_keys(const StepRows& rows) const {
  const bool decodes = rows.tokens() == 1 && rows.keys() > 1;
  return decodes ? rounded_up(rows.keys(), options_.key_multiple) : rows.keys();
}

void KvCache::check_room(const StepRows& rows) const {
  if (rows.keys() > options_.max_tokens) {
    throw std::length_error(fmt::format(
        "a row would hold {} tokens, but its cache was made for at most {}: make the session for more tokens",
        rows.keys(), options_.max_tokens));
  }
}

std::int64_t KvCache::longest() const { return *std::ranges::max_element(lengths_); }

}  // namespace decodelab
