// Hashes a text to a short name that is the same with every compiler.
#pragma once

#include <string>
#include <string_view>

namespace decodelab {

/// Returns 32 hexadecimal digits: two FNV-1a hashes with different offsets. The last 16 digits are plain FNV-1a of 64
/// bits (http://www.isthe.com/chongo/tech/comp/fnv/). The digest guards against mistakes, not against malice.
std::string digest(std::string_view text);

}  // namespace decodelab
