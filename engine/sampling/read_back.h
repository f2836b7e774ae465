// When a step's tokens are read on the host: what the slot read_back holds.
#pragma once

#include <cstdint>

namespace decodelab {

/// `each`: before the next step begins. `late`: after the next step was handed to the device, which then never waits for the host to
/// have read; a row that ends is noticed one step late.
enum class ReadBack : std::uint8_t { each, late };

}  // namespace decodelab
