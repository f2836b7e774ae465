// How keys and values lie in memory, and to which length they are shown: two slots of a plan.
#pragma once

#include <cstdint>

namespace decodelab {

/// Keys and values of a layer in a tensor each (the reference), or side by side in one, so that a step writes once (SantaCoder study,
/// step 3: a row of the merged tensor is a key and its value).
enum class KvLayout : std::uint8_t { split, merged };

/// A decode step is shown a number of keys that is a multiple of this; those past a row's length are zero, and hidden by its mask.
/// 1, the reference, shows none that is not there. Multiples of 8 take the aligned 16-bit matrix kernels (SantaCoder study, step 3).
using KeyMultiple = std::int64_t;

}  // namespace decodelab
