// Says what is wrong with values of rows.
#include "base/select_rows.h"

#include <stdexcept>

#include <fmt/format.h>

namespace decodelab {

void refuse_number_of_values(std::size_t given, std::string_view values, std::size_t rows, std::string_view of) {
  throw std::invalid_argument(
      fmt::format("{} {} came for {} {}; expected none, one for all, or one for each", given, values, rows, of));
}

}  // namespace decodelab
