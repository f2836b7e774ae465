// Where the time of a run went, as a table and in one line.
#pragma once

#include <string>

#include "base/table.h"
#include "reports/statistics/summary.h"
#include "reports/statistics/time_use.h"

namespace decodelab {

/// Returns the words for an activity, such as `loading weights`, `warm-up` or `timed steps`.
const char* activity_words(Activity activity);

/// Returns `9.1 % timed steps, 8.8 % warm-up, 30.0 % checking outputs`: timed steps and warm-up first, then the other
/// activities, the largest share first. Shares below 0.05 % are left out. Returns an empty text where no time was
/// spent.
std::string time_use_words(const TimeUse& use);

/// Returns the label of the arm, or `shared by all arms` where launches spent the time for all of them.
std::string time_use_label(const ArmTimeUse& arm);

/// Returns a row for each arm, and one for the time that belongs to no single arm: seconds, and the share of each
/// activity. The table has no rows where the run's launches recorded no such times.
Table time_table(const RunSummary& summary);

}  // namespace decodelab
