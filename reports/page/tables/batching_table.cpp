// Renders servings.
#include "reports/page/tables/batching_table.h"

#include <functional>

#include <fmt/format.h>

#include "base/units.h"
#include "reports/page/tables/short_arms.h"

namespace decodelab {
namespace {

std::string text_of(const std::optional<MeanOfLaunches>& value, const std::function<std::string(double)>& format) {
  if (!value) {
    return "";
  }
  if (!value->interval) {
    return format(value->mean);
  }
  const double half = (value->interval->high - value->interval->low) / 2;
  return fmt::format("{} ± {}", format(value->mean), format_percent(half / value->mean));
}

}  // namespace

Table batching_table(const RunSummary& summary) {
  Table table{.title = "Batches that serve requests",
              .columns = {{"Batch"},
                          {"Requests"},
                          {"Arm", false, true},
                          {"Tokens/s", true},
                          {"First token", true},
                          {"Between tokens", true}},
              .rows = {},
              .notes = {}};
  const auto number = [](double value) { return fmt::format("{:.4g}", value); };
  const auto time = [](double ns) { return format_time(ns); };
  for (const Serving& serving : servings_of(summary)) {
    const SummaryRow& row = *serving.row;
    table.rows.push_back({row.run_id,
                          row.cell.id,
                          {fmt::format("b{} p{}", row.cell.batch, row.cell.length),
                           serving.request_rate > 0 ? fmt::format("{}/s", serving.request_rate) : "at once",
                           row.arm.label, text_of(serving.tokens_per_second, number),
                           text_of(serving.first_token_ns, time), text_of(serving.between_tokens_ns, time)}});
  }
  if (!table.rows.empty()) {
    table.notes.emplace_back(
        "Each step serves four requests for each row of the batch, prompts and completions of different lengths, the "
        "same for every arm. Times are means over requests, from when a request came; behind ± stands half the "
        "unpaired "
        "95 % interval over launches.");
    shorten_arms(table, 2, summary.arms);
  }
  return table;
}

}  // namespace decodelab
