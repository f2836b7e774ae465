// The most probable token of each row.
#pragma once

#include "engine/tensor.h"

namespace decodelab {

class Workspace;

/// Returns the index of the highest of `logits` [N, V] in each row, ties to the lowest: [N, 1] int64 on their device,
/// in memory of `workspace`.
at::Tensor highest_logits(const at::Tensor& logits, Workspace& workspace);

}  // namespace decodelab
