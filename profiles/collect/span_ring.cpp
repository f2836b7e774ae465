// Allocates the ring of spans.
#include "profiles/collect/span_ring.h"

#include <algorithm>
#include <bit>

namespace decodelab {

SpanRing::SpanRing(std::size_t capacity)
    : records_(std::bit_ceil(std::max<std::size_t>(capacity, 2))), mask_(records_.size() - 1) {}

}  // namespace decodelab
