// Values of the rows of a batch: those that a filter keeps, and those of a caller who gives one for all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
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

/// Throws std::invalid_argument for `given` values of `rows` rows: expected none, one for all, or one for each.
[[noreturn]] void refuse_number_of_values(std::size_t given, std::string_view values, std::size_t rows,
                                          std::string_view of);

/// Returns the value of each of `rows` rows: the caller's own, his only one for all, or without any a default. Throws
/// std::invalid_argument for another number of values, which `values` and `of` name: "rules", "rows".
template <typename Value>
std::vector<Value> one_for_each_row(const std::vector<Value>& given, std::size_t rows, std::string_view values,
                                    std::string_view of) {
  if (given.size() == rows) {
    return given;
  }
  if (given.size() > 1) {
    refuse_number_of_values(given.size(), values, rows, of);
  }
  return std::vector<Value>(rows, given.empty() ? Value{} : given.front());
}

}  // namespace decodelab
