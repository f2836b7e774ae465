// What the flags of rows mean, in a few words.
#pragma once

#include <string>
#include <string_view>

namespace decodelab {

/// Returns what `flag` says of its row, as a phrase that can stand in parentheses behind its name; empty where the flag
/// is unknown, as one of another version's store may be.
std::string_view words_of_flag(const std::string& flag);

}  // namespace decodelab
