// The known name that a misspelled key was probably meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace decodelab {

/// The one of `names` with the fewest letters to insert, delete or replace (Levenshtein 1966); the first of equals. Empty where there
/// are no names. Only the first 100 bytes count.
std::string nearest_name(std::string_view name, const std::vector<std::string>& names);

}  // namespace decodelab
