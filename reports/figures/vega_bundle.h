// The JavaScript that makes figures interactive, embedded in the program.
#pragma once

#include <string_view>

namespace decodelab {

/// Returns Vega, Vega-Lite and Vega-Embed as one script, gzipped and in base64; empty in a build without vl-convert.
std::string_view vega_bundle();

}  // namespace decodelab
