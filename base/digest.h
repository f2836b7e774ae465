// A short name for a long text, the same with every compiler.
#pragma once

#include <string>
#include <string_view>

namespace decodelab {

/// 32 hexadecimal digits: FNV-1a with two offsets, of which the last 16 digits are plain FNV-1a of 64 bits
/// (http://www.isthe.com/chongo/tech/comp/fnv/). It guards against mistakes, not against malice.
std::string digest(std::string_view text);

}  // namespace decodelab
