// Finds the names that a misspelled one was probably meant to be, for the errors about arms, cells and flags.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace decodelab {

/// Returns the number of edits that turn one text into the other: insert, delete, replace, or swap two neighbours,
/// which no later edit may split again (Damerau 1964, doi:10.1145/363958.363994, in the restricted form called optimal
/// string alignment). Compares bytes, upper and lower case alike.
std::size_t edit_distance(std::string_view left, std::string_view right);

/// Returns the `count` nearest of `names`, however different they are: those that begin with `name` first, then by edit
/// distance. Equally near names keep their order.
std::vector<std::string> nearest_names(std::string_view name, std::span<const std::string> names,
                                       std::size_t count = 3);

/// Returns "did you mean 'a' or 'b'?", or an empty text where no name is near enough. A name is near if it begins with
/// `name` or has at most a third of its letters wrong (two in names of 4 to 6 letters, one in shorter ones).
std::string did_you_mean(std::string_view name, std::span<const std::string> names);

}  // namespace decodelab
