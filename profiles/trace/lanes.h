// Puts operations of one stream that overlap into lanes of their own, as viewers need them.
#pragma once

#include "profiles/trace/events.h"

#include <vector>

namespace decodelab {

/// Fills DeviceOperation::lane: the lowest that is free, per device, context and stream. `operations` are sorted by start.
void fill_lanes(std::vector<DeviceOperation>& operations);

}  // namespace decodelab
