// How the prompts of a batch go through the layers: a slot of a plan.
#pragma once

#include <cstdint>

namespace decodelab {

/// As rows filled up to the longest prompt (the reference), or one after the other without padding, so that matrix products see real
/// tokens only (SantaCoder study: its `flash` build). Attention and cache see padded rows either way.
enum class PrefillLayout : std::uint8_t { padded, packed };

}  // namespace decodelab
