// What the variants that share a model among ranks have in common.
#pragma once

#include "variants/registry.h"

namespace decodelab {

/// Registers a variant that binds the communicator to `rule` with as many ranks as its parameter `ranks` says. It
/// proves itself by the sums that its ranks took, and runs on the host's memory unless `variant` says where else.
bool register_ranks_variant(Variant variant, const CommunicatorRule& rule);

}  // namespace decodelab
