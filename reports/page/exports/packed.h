// Text that the page carries compressed, for its script to unpack.
#pragma once

#include <string>
#include <string_view>

namespace decodelab {

/// The text gzipped and in base64: letters, digits, `+`, `/` and `=` only, so that nothing in it can end the element
/// that holds it. Equal texts give equal results, without a time stamp.
std::string packed(std::string_view text);

}  // namespace decodelab
