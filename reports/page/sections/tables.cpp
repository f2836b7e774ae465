// The tables of a run: every cell against the baseline, and the times as users of TGI know them.
#include "reports/page/sections/section.h"
#include "reports/page/tables/batching_table.h"
#include "reports/page/tables/prediction_table.h"
#include "reports/page/tables/result_tables.h"

namespace decodelab {

std::string tables_section(const SectionContext& context) {
  const RunSummary& summary = context.run.summary;
  std::string html;
  if (const Table batches = batching_table(summary); !batches.rows.empty()) {
    html += to_html(batches);
  }
  for (const Table& table : comparison_tables(summary, ArmLabels::full)) {
    html += to_html(table);
  }
  std::string times;
  for (const Table& table : latency_tables(summary)) {
    times += to_html(table);
  }
  if (const Table predictions = prediction_table(summary); !predictions.rows.empty()) {
    html += to_html(predictions);
  }
  return html + folded_html("Times per arm and length: average, lowest, highest, percentiles", times);
}

}  // namespace decodelab
