// Puts rows of tokens into one list of numbers.
#include "engine/ranks/rank_orders.h"

#include <stdexcept>

namespace decodelab {

std::vector<std::int64_t> tokens_to_numbers(std::span<const std::vector<std::int64_t>> tokens) {
  std::vector<std::int64_t> numbers;
  for (const std::vector<std::int64_t>& row : tokens) {
    numbers.push_back(std::ssize(row));
    numbers.insert(numbers.end(), row.begin(), row.end());
  }
  return numbers;
}

std::vector<std::vector<std::int64_t>> tokens_from_numbers(std::span<const std::int64_t> numbers) {
  std::vector<std::vector<std::int64_t>> tokens;
  while (!numbers.empty()) {
    const std::int64_t count = numbers.front();
    numbers = numbers.subspan(1);
    if (count < 0 || count > std::ssize(numbers)) {
      throw std::invalid_argument("an order to a rank ends early");
    }
    const auto row = numbers.first(static_cast<std::size_t>(count));
    tokens.emplace_back(row.begin(), row.end());
    numbers = numbers.subspan(static_cast<std::size_t>(count));
  }
  return tokens;
}

}  // namespace decodelab
