// What batches that serve requests do, an arm a row: tokens a second, time to first token, time between tokens.
#pragma once

#include "base/table.h"
#include "reports/statistics/serving.h"

namespace decodelab {

/// Returns the columns Batch | Requests | Arm | Tokens/s | First token | Between tokens, each number with half the
/// width of its unpaired 95 % interval where there are two launches or more; no rows where the run has no cells of
/// phase batching.
Table batching_table(const RunSummary& summary);

}  // namespace decodelab
