// Text that the page carries compressed, for its script to unpack.
#pragma once

#include <string>
#include <string_view>

namespace decodelab {

/// Returns the text gzipped and in base64. The result has only letters, digits, `+`, `/` and `=`, so that nothing in it
/// can end the HTML element that holds it. It has no time stamp: equal texts give equal results.
std::string packed(std::string_view text);

}  // namespace decodelab
