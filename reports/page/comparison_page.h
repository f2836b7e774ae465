// A comparison of two runs, or of two arms of one, as a table and as data.
#pragma once

#include <string>
#include <vector>

#include "reports/page/table.h"
#include "reports/statistics/run_comparison.h"

namespace decodelab {

struct RunComparison {
  RunRecord baseline;
  RunRecord candidate;
  std::vector<ComparedCell> rows;
};

/// Cell | Arm | Time ratio [95 %] | Speed-up | Launches; what differs between the runs stands in the notes.
Table comparison_page_table(const RunComparison& comparison);

/// One object with `schema_version, baseline, candidate, differences[], rows[]`; a line for each row; a record for each row.
std::string comparison_to_json(const RunComparison& comparison);
std::string comparison_to_jsonl(const RunComparison& comparison);
std::string comparison_to_csv(const RunComparison& comparison);

}  // namespace decodelab
