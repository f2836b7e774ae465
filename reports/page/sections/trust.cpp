// Whether the numbers of a run deserve trust: what was measured and excluded, and what order and drift did to it.
#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/units.h"
#include "reports/page/sections/section.h"
#include "reports/page/tables/quality_table.h"
#include "reports/page/tables/result_tables.h"
#include "reports/page/tables/time_table.h"
#include "reports/statistics/comparison.h"
#include "reports/statistics/labels.h"

namespace decodelab {
namespace {

std::string signed_share(const std::optional<LaunchEffect>& effect) {
  return effect ? fmt::format("{:+.2f} %", effect->mean * 100) : "";
}

// Lists the other engines, with their versions and settings.
Table peers_table(const RunSummary& summary) {
  Table table{.title = "Other engines",
              .columns = {{"Arm"}, {"Engine"}, {"Version"}, {"Settings"}, {"Started by"}},
              .rows = {},
              .notes = {}};
  for (const ArmRecord& arm : summary.arms) {
    if (arm.command.empty()) {
      continue;
    }
    const auto known = [](const std::string& text) { return text.empty() ? "not told" : text; };
    table.rows.push_back(
        {summary.run.id, 0, {arm.label, known(arm.engine), known(arm.version), known(arm.settings), arm.command}});
  }
  return table;
}

// Says how near the outputs of each arm come to the reference's, over all cells in which they were compared.
Table agreement_table(const RunSummary& summary) {
  Table table{.title = "Outputs beside the reference's",
              .columns = {{"Arm"},
                          {"Cells", true},
                          {"Largest logit error", true},
                          {"KL divergence", true},
                          {"Same largest logit", true},
                          {"Ties", true}},
              .rows = {},
              .notes = {"Each the worst of the arm's cells: the largest difference of a logit over the largest logit, "
                        "the mean Kullback-Leibler divergence of "
                        "a row's softmax in nats, the share of rows whose largest logit is the same id, and the rows "
                        "in which it is another within twice "
                        "the tolerance. Both sides were fed the same tokens."}};
  for (const ArmRecord& arm : summary.arms) {
    std::int64_t cells = 0;
    std::int64_t ties = 0;
    Agreement worst{.logit_error = 0, .kl_divergence = 0, .top_1_agreement = 1};
    for (const SummaryRow& row : summary.rows) {
      if (row.arm.id != arm.id || !row.agreement) {
        continue;
      }
      ++cells;
      ties = std::max(ties, row.ties);
      worst.logit_error = std::max(worst.logit_error, row.agreement->logit_error);
      worst.kl_divergence = std::max(worst.kl_divergence, row.agreement->kl_divergence);
      worst.top_1_agreement = std::min(worst.top_1_agreement, row.agreement->top_1_agreement);
    }
    if (cells == 0) {
      continue;
    }
    table.rows.push_back(
        {summary.run.id,
         0,
         {arm.label, std::to_string(cells), fmt::format("{:.2g}", worst.logit_error),
          fmt::format("{:.2g}", worst.kl_divergence), format_percent(worst.top_1_agreement), std::to_string(ties)}});
  }
  return table;
}

constexpr std::size_t kMostBlocksListed = 40;  // blocks.csv has all

// Blocks in which other processes worked, and whether they count.
Table void_table(const RunReport& run) {
  Table table{.title = "Blocks that other processes disturbed",
              .columns = {{"Cell"}, {"Launch", true}, {"Block", true}, {"Core time of others", true}, {"Counts"}},
              .rows = {},
              .notes = {}};
  std::map<std::int64_t, std::vector<const BlockRecord*>> blocks_of_cell;
  for (const BlockRecord& block : run.data->blocks) {
    blocks_of_cell[block.cell_id].push_back(&block);
  }
  std::size_t left_out = 0;
  for (const CellRecord& cell : run.data->cells) {
    const auto& blocks = blocks_of_cell[cell.id];
    const ValidBlocks valid = valid_blocks(blocks);
    for (const BlockRecord* block : blocks) {
      if (!(block->other_cpu_share > kVoidShare)) {
        continue;
      }
      if (table.rows.size() == kMostBlocksListed) {
        ++left_out;
        continue;
      }
      const bool counts = std::ranges::find(valid.blocks, block) != valid.blocks.end();
      table.rows.push_back({run.summary.run.id,
                            cell.id,
                            {cell_label(cell), std::to_string(block->launch), std::to_string(block->block),
                             format_percent(block->other_cpu_share),
                             valid.saturated ? "yes, without a verdict: others took over a third of the cores"
                             : counts        ? "yes: without such blocks too few would be left"
                                             : "no, void for all arms"}});
    }
  }
  if (left_out > 0) {
    table.notes.push_back(fmt::format("And {} more; blocks.csv has all.", left_out));
  }
  return table;
}

// What a reader should know before any number.
std::string premises_html(const RunReport& run) {
  const RunRecord& record = run.summary.run;
  const auto disturbed = std::ranges::count_if(
      run.data->blocks, [](const BlockRecord& block) { return block.other_cpu_share > kVoidShare; });
  return fmt::format(
      "<p data-run=\"{}\">Measured on {} ({} cores){}. {} {} of {} blocks had other processes above {}.</p>\n",
      record.id, escape_html(record.machine.cpu), record.machine.cores,
      record.machine.accelerator.empty() ? "" : " with " + escape_html(record.machine.accelerator),
      record.model.random_weights ? "<b>Random weights, timing only:</b> texts and their quality mean nothing here."
                                  : "The weights are those of the checkpoint.",
      disturbed, run.data->blocks.size(), format_percent(kVoidShare));
}

}  // namespace

std::string trust_section(const SectionContext& context) {
  const auto& [run, drawings, detail] = context;
  std::string html = to_html(ledger_table(run.summary)) + premises_html(run);
  for (const Table& table : {time_table(run.summary), peers_table(run.summary), agreement_table(run.summary),
                             quality_table(run.summary), void_table(run)}) {
    if (!table.rows.empty()) {
      html += to_html(table);
    }
  }
  html += figures_html(context, FigureSection::trust);
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
    if (row.blocks == 0 || (detail == Detail::compact && !remarkable)) {
      continue;
    }
    std::string flags;
    for (const std::string& flag : row.flags) {
      flags += (flags.empty() ? "" : ", ") + flag;
    }
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
      "A place: what it adds to a visit to come one place later in its block (drift, heat); blank where arms take "
      "turns. Another before: what it adds to follow another arm instead of itself (caches, clocks); flagged "
      "carry-over beyond a third of the gate's margin."};
  if (detail == Detail::compact) {
    nulls.notes.emplace_back(
        "Only rows with a flag, a skipped block or a null that does not span 0 are listed here; blocks.csv has all "
        "visits.");
  }
  return html + folded_html(detail == Detail::full ? "In-run null, warm-up and flags of every row"
                                                   : "In-run null, warm-up and flags where they are remarkable",
                            to_html(nulls));
}

}  // namespace decodelab
