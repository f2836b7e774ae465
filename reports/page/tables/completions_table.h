// What the arms of a run say to its prompts, as a table.
#pragma once

#include "base/table.h"
#include "reports/store/record.h"

namespace decodelab {

/// Returns a row for each prompt and each different answer to it, with the arms that give it. A note says whether all
/// arms say the same. The table has no rows where the run has no prompts.
Table completions_table(const RunData& data);

}  // namespace decodelab
