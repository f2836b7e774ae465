// Renders servings.
#include "reports/page/tables/batching_table.h"

#include <algorithm>
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
  const std::vector<Serving> servings = servings_of(summary);
  const bool limited = std::ranges::any_of(servings, [](const Serving& serving) { return serving.limits.any(); });
  if (limited) {
    table.columns.push_back({"Good requests/s", true});
  }
  for (const Serving& serving : servings) {
    const SummaryRow& row = *serving.row;
    table.rows.push_back({row.run_id,
                          row.cell.id,
                          {fmt::format("b{} p{}", row.cell.batch, row.cell.length),
                           serving.request_rate > 0 ? fmt::format("{}/s", serving.request_rate) : "at once",
                           row.arm.label, text_of(serving.tokens_per_second, number),
                           text_of(serving.first_token_ns, time), text_of(serving.between_tokens_ns, time)}});
    if (limited) {
      table.rows.back().fields.push_back(text_of(serving.good_requests_per_second, number));
    }
  }
  if (!table.rows.empty()) {
    table.notes.emplace_back(
        "Each step serves four requests for each row of the batch, prompts and completions of different lengths, the "
        "same for every arm. Times are means over requests, from when a request came; behind ± stands half the "
        "unpaired "
        "95 % interval over launches.");
    if (limited) {
      const auto asked = std::ranges::find_if(servings, [](const Serving& serving) { return serving.limits.any(); });
      table.notes.push_back(
          fmt::format("Good requests are those that were answered within {}: the goodput. Its cell was measured by "
                      "itself, like those of the other columns; where it is empty, no request was.",
                      limits_words(asked->limits)));
    }
    shorten_arms(table, 2, summary.arms);
  }
  return table;
}

}  // namespace decodelab
