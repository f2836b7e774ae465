// Finds the names that a misspelled one was probably meant to be, for the errors about arms, cells and flags.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace decodelab {

/// Edits that turn one text into the other: insert, delete, replace, or swap two neighbours, which no later edit may
/// split again (Damerau 1964, doi:10.1145/363958.363994, in the restricted form called optimal string alignment).
/// Bytes, upper and lower case alike.
std::size_t edit_distance(std::string_view left, std::string_view right);

/// The `count` nearest of `names`, however far they are: first those that begin with `name`, then by edit distance,
/// equals as listed.
std::vector<std::string> nearest_names(std::string_view name, std::span<const std::string> names,
                                       std::size_t count = 3);

/// "did you mean 'a' or 'b'?", or nothing where no name is near enough: none begins with `name` or has at most a third
/// of its letters wrong (two in names of 4 to 6 letters, one in shorter ones).
std::string did_you_mean(std::string_view name, std::span<const std::string> names);

}  // namespace decodelab
