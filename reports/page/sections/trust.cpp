// Whether the numbers of a run deserve trust: what was measured and excluded, and what order and drift did to it.
#include <fmt/format.h>

#include "reports/page/format.h"
#include "reports/page/result_tables.h"
#include "reports/page/sections/section.h"

namespace decodelab {
namespace {

std::string signed_share(const std::optional<LaunchEffect>& effect) {
  return effect ? fmt::format("{:+.2f} %", effect->mean * 100) : "";
}

}  // namespace

std::string trust_section(const SectionContext& context) {
  const auto& [run, drawings, detail] = context;
  std::string html = to_html(ledger_table(run.summary));
  Table nulls{.title = "In-run null, order and blocks",
              .columns = {{"Cell"},
                          {"Arm"},
                          {"Blocks", true},
                          {"Skipped", true},
                          {"Warm-up steps", true},
                          {"In-run null [95 %]", true},
                          {"A place", true},
                          {"Another before", true},
                          {"Flags"}},
              .rows = {},
              .notes = {}};
  for (const SummaryRow& row : run.summary.rows) {
    const auto& null = row.comparison.in_run_null;
    const bool remarkable =
        !row.flags.empty() || row.comparison.skipped_blocks > 0 || (null && (null->low > 0 || null->high < 0));
    if (row.blocks == 0 || (detail == Detail::compact && !remarkable)) continue;
    std::string flags;
    for (const std::string& flag : row.flags) flags += (flags.empty() ? "" : ", ") + flag;
    nulls.rows.push_back({row.run_id,
                          row.cell.id,
                          {cell_label(row.cell), row.arm.label, std::to_string(row.blocks),
                           std::to_string(row.comparison.skipped_blocks), std::to_string(row.warmup),
                           null ? fmt::format("{:+.2f} % to {:+.2f} %", null->low * 100, null->high * 100) : "",
                           signed_share(row.slot), signed_share(row.carry_over), flags}});
  }
  nulls.notes = {
      "The in-run null spans 0 in about 95 % of the rows when nothing drifts within blocks. It is no A/A test: effects "
      "of a launch do not show in it.",
      "A place: what it adds to a visit to come one place later in its block (drift, heat). Another before: what it "
      "adds "
      "to follow another arm instead of itself (caches, clocks); flagged carry-over beyond a third of the gate's "
      "margin."};
  if (detail == Detail::compact)
    nulls.notes.emplace_back(
        "Only rows with a flag, a skipped block or a null that does not span 0 are listed here; blocks.csv has all "
        "visits.");
  return html + folded_html(detail == Detail::full ? "In-run null, warm-up and flags of every row"
                                                   : "In-run null, warm-up and flags where they are remarkable",
                            to_html(nulls));
}

}  // namespace decodelab
