// Edit distance, row by row.
#include "reports/statistics/nearest_name.h"

#include <algorithm>
#include <numeric>

namespace decodelab {
namespace {

constexpr std::size_t kBytesThatCount = 100;  // a longer key is no misspelling

std::size_t edits(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& names) {
  const std::string_view start = name.substr(0, kBytesThatCount);
  const auto nearest =
      std::ranges::min_element(names, {}, [&](const std::string& other) { return edits(start, other); });
  return nearest == names.end() ? std::string() : *nearest;
}

}  // namespace decodelab
