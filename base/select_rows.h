// Values of the rows of a batch: those that a filter keeps, and those of a caller who gives one for all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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

/// Returns the value of each of `rows` rows: the caller's own, his only one for all, or without any a default. Returns
/// nothing where the caller gave another number of values.
template <typename Value>
std::optional<std::vector<Value>> one_for_each_row(const std::vector<Value>& given, std::size_t rows) {
  if (given.size() == rows) {
    return given;
  }
  if (given.size() > 1) {
    return std::nullopt;
  }
  return std::vector<Value>(rows, given.empty() ? Value{} : given.front());
}

}  // namespace decodelab
