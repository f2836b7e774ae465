// What intervals of qualities rest on.
#pragma once

namespace decodelab {

/// Standard errors that a 95 % interval of a mean over many tokens reaches to either side.
inline constexpr double kNormal95 = 1.96;

}  // namespace decodelab
