// Pages of keys and values that a cache shares with whoever keeps them.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/tensor.h"

namespace decodelab {

/// The pages that hold the tokens of one row from `begin` to before `end`. The first of them may begin before `begin`
/// and the last go on behind `end`: what stands there belongs to the same sequence, or to nobody.
struct SharedPages {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::vector<std::vector<at::Tensor>> layers{};  ///< Of each layer, as PagedCache has them; a tensor is a page.

  /// Returns the pages of a part of these tokens: those from `from` to before `to`, counted from `begin`.
  SharedPages part(std::int64_t from, std::int64_t to) const;
  /// Returns the bytes of all pages, however many share them.
  std::int64_t bytes() const;
};

/// What a cache of pages can do beside what every cache does.
class PageSharing {
 public:
  virtual ~PageSharing() = default;

  /// Returns the pages of tokens that the row holds. Whoever writes into one of them afterwards copies it first.
  virtual SharedPages share(std::int64_t row, std::int64_t begin, std::int64_t end) const = 0;
  /// Lets `row`, which holds nothing, begin with `tokens` tokens that lie in these pages, each piece behind the one
  /// before it. KvCache::advance() comes next. Returns how many pages that are, of all layers.
  virtual std::int64_t adopt(std::int64_t row, const std::vector<const SharedPages*>& pieces, std::int64_t tokens) = 0;
};

}  // namespace decodelab
