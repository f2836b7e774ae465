// Where the time of a run went, as a table and in one line.
#pragma once

#include <string>

#include "base/table.h"
#include "reports/statistics/summary.h"
#include "reports/statistics/time_use.h"

namespace decodelab {

/// `loading weights`, `warm-up`, `timed steps`: an activity as people read it.
const char* activity_words(Activity activity);

/// `9.1 % timed steps, 8.8 % warm-up, 30.0 % checking outputs`: what a run is for first, then the others, the largest
/// first; what is below 0.05 % is left out. Empty where nothing was spent.
std::string time_use_words(const TimeUse& use);

/// A row an arm, and one of what no single arm was the cause of: seconds, and the share of each activity. No rows where
/// the run's launches did not say.
Table time_table(const RunSummary& summary);

}  // namespace decodelab
