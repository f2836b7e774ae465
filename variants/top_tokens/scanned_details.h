// Details from what a scan of a row's logits has found, wherever it ran.
#pragma once

#include <cstddef>
#include <functional>

#include "engine/sampling/top_tokens.h"

namespace decodelab {

/// Returns the details of a token whose logit is `own`. `logit_of_id` returns the logit of one of the ids that are
/// asked for, by its place among them, and `largest` those of the most probable tokens; both are called only where they
/// are asked for, and the row says how likely its tokens are.
TokenDetails scanned_details(const TokenRequest& asked, const LogitScan& scan, float own,
                             const std::function<float(std::size_t place)>& logit_of_id,
                             const std::function<LargestLogits()>& largest);

}  // namespace decodelab
