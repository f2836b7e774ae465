// Picks the rows of a batch that a filter keeps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace decodelab {

/// Returns the elements of `values` at the indices `rows`, in the order of `rows`; an index may appear twice.
template <typename Value>
std::vector<Value> select_rows(const std::vector<Value>& values, std::span<const std::int64_t> rows) {
  std::vector<Value> kept;
  kept.reserve(rows.size());
  for (const std::int64_t row : rows) {
    kept.push_back(values.at(static_cast<std::size_t>(row)));
  }
  return kept;
}

}  // namespace decodelab
