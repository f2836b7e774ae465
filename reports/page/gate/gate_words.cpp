// Puts outcomes, rows and findings of a gate into sentences and tables.
#include "reports/page/gate/gate_words.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "reports/page/tables/overview.h"
#include "reports/statistics/labels.h"

namespace decodelab {
namespace {

constexpr double kLargestEffect = 1000;  // per cent; beyond it an interval has no meaning but its width
constexpr double kSmallestP = 0.0001;
constexpr std::size_t kWidestCellLabel = 24;  // leaves enough width to the other columns of a table
constexpr std::size_t kWidestLabel = 60;

std::string effect_number(double log_ratio) {
  const double percent = 100 * std::expm1(log_ratio);
  if (percent >= kLargestEffect) {
    return "over +999";
  }
  return fmt::format("{:+.{}f}", percent, std::abs(percent) < 9.995 ? 2 : 1);
}

std::string interval_text(const std::optional<Interval>& interval) {
  if (!interval) {
    return "";
  }
  return fmt::format("[{}, {}] %", effect_number(interval->low), effect_number(interval->high));
}

std::string minutes_text(const GateDecision& decision, std::size_t gate_blocks) {
  if (!decision.gate_block_s) {
    return "";
  }
  const double minutes = *decision.gate_block_s * static_cast<double>(gate_blocks) / kSecondsOfAMinute;
  return fmt::format(", {:.{}f} minutes", minutes, minutes < 9.95 ? 1 : 0);
}

const char* verdict_name(const GateRow& row) {
  switch (row.look.verdict) {
    case LookVerdict::slower: return "SLOWER";
    case LookVerdict::faster: return "FASTER";
    case LookVerdict::within: return "pass";
    case LookVerdict::undecided: return "undecided";
  }
  return "";
}

std::size_t count_of(const GateDecision& decision, LookVerdict verdict) {
  return static_cast<std::size_t>(
      std::ranges::count_if(decision.rows, [&](const GateRow& row) { return row.look.verdict == verdict; }));
}

// Returns "b1 tg @ d64: words; and 2 more", without a full stop.
template <class Items, class Words>
std::string first_and_more(const Items& items, Words words) {
  if (items.empty()) {
    return "nothing is known";
  }
  const std::string more = items.size() > 1 ? fmt::format("; and {} more", items.size() - 1) : "";
  return words(items.front()) + more;
}

std::vector<CounterFinding> worst_findings(const GateDecision& decision) {
  std::vector<CounterFinding> findings;
  for (const GateCounterCheck& check : decision.counters) {
    findings.insert(findings.end(), check.findings.begin(), check.findings.end());
  }
  std::ranges::stable_sort(findings, {}, &CounterFinding::outcome);
  std::erase_if(findings, [&](const CounterFinding& finding) { return finding.outcome != findings.front().outcome; });
  return findings;
}

std::string regression_words(const GateDecision& decision) {
  if (decision.stage == GateStage::counters) {
    return first_and_more(worst_findings(decision), gate_finding_words);
  }
  std::vector<const GateRow*> slower = rows_by_evidence(decision);
  std::erase_if(slower, [](const GateRow* row) { return row->look.verdict != LookVerdict::slower; });
  const bool settings = has_several_settings(decision);
  return first_and_more(slower, [&](const GateRow* row) {
    return fmt::format("{} is {}", gate_row_label(*row, settings), gate_row_words(*row, decision));
  });
}

std::string proceed_words(const GateDecision& decision) {
  const std::size_t next = decision.next_look.value_or(0);
  const std::string undecided =
      decision.rows.empty()
          ? "no look yet"
          : fmt::format("{} of {} rows undecided", count_of(decision, LookVerdict::undecided), decision.rows.size());
  return fmt::format("{} after {} gate blocks; the next look is at {}{}", undecided, decision.gate_blocks, next,
                     next > decision.gate_blocks ? minutes_text(decision, next - decision.gate_blocks) : "");
}

std::string outcome_words(const GateDecision& decision) {
  switch (decision.outcome) {
    case GateOutcome::proceed: return proceed_words(decision);
    case GateOutcome::pass:
      return fmt::format("no row of {} is slower by its margin ({} gate blocks, {} launches)", decision.rows.size(),
                         decision.gate_blocks, 2 * decision.gate_blocks);
    case GateOutcome::regression: return regression_words(decision);
    case GateOutcome::inconclusive: {
      const char* const exit = decision.policy.on_inconclusive == OnInconclusive::pass ? ", which the policy lets pass"
                               : decision.policy.on_inconclusive == OnInconclusive::fail ? ", which the policy fails"
                                                                                         : "";
      return first_and_more(decision.problems, gate_problem_words) + exit;
    }
    case GateOutcome::invalid:
      return decision.stage == GateStage::counters ? first_and_more(worst_findings(decision), gate_finding_words)
                                                   : first_and_more(decision.problems, gate_problem_words);
    case GateOutcome::outputs_differ: return first_and_more(decision.problems, gate_problem_words);
  }
  return "";
}

std::string undecided_words(const GateRow& row, const GateDecision& decision) {
  if (!row.look.interval) {
    return "undecided: too few gate blocks with its times";
  }
  std::string words = fmt::format("undecided (p = {}, best estimate {}, margin {})", format_p(row.look.p_family),
                                  format_effect(row.look.estimate), format_percent(row.margin));
  if (row.look.tests_disagree) {
    words += "; Student's t and the sign flips disagree";
  }
  if (row.look.more) {
    words += fmt::format("; about {} more gate block{}{}", *row.look.more, *row.look.more == 1 ? "" : "s",
                         minutes_text(decision, *row.look.more));
  }
  return words;
}

std::string launch_order_note(const GateDecision& decision) {
  std::vector<const GateRow*> moved;
  for (const GateRow& row : decision.rows) {
    const auto& interval = row.launch_order.interval;
    if (interval && (interval->low > 0 || interval->high < 0)) {
      moved.push_back(&row);
    }
  }
  if (moved.empty()) {
    return "Which process started first made no difference that was seen (95 %).";
  }
  const GateRow& first = *moved.front();
  return fmt::format(
      "Where the candidate's process starts first, {} of {} rows differ for that alone ({}: {}, 95 % {}); both orders "
      "are in "
      "every gate block, so that the effects above are free of it.",
      moved.size(), decision.rows.size(), gate_row_label(first), format_effect(first.launch_order.estimate),
      interval_text(first.launch_order.interval));
}

}  // namespace

std::string format_effect(double log_ratio) { return effect_number(log_ratio) + " %"; }

std::string format_p(double p) { return p < kSmallestP ? "< 0.0001" : fmt::format("{:.4f}", p); }

std::string gate_headline(const GateDecision& decision) {
  return fmt::format("{}: {}.", to_string(decision.outcome), outcome_words(decision));
}

std::string gate_subject(const GateDecision& decision) {
  return fmt::format("{} against {}, {}, plan {}", one_line(decision.candidate, kWidestLabel),
                     one_line(decision.baseline, kWidestLabel), one_line(run_title(decision.run), kWidestLabel),
                     decision.plan);
}

std::string gate_row_label(const GateRow& row, bool settings) {
  if (!row.cell) {
    return "composite";
  }
  const std::string label = cell_label(*row.cell);
  return settings ? fmt::format("{}, {}", label, one_line(setting_label(*row.cell), kWidestLabel)) : label;
}

bool has_several_settings(const GateDecision& decision) {
  std::set<std::string> settings;
  for (const GateRow& row : decision.rows) {
    if (row.cell) {
      settings.insert(setting_label(*row.cell));
    }
  }
  return settings.size() > 1;
}

std::string gate_row_words(const GateRow& row, const GateDecision& decision) {
  const LookContrast& look = row.look;
  switch (look.verdict) {
    case LookVerdict::slower:
      return fmt::format("slower (p = {}, best estimate {})", format_p(look.p_family), format_effect(look.estimate));
    case LookVerdict::faster:
      return fmt::format("faster (p = {}, best estimate {})", format_p(look.p_family), format_effect(look.estimate));
    case LookVerdict::within:
      return fmt::format("not slower by {} (best estimate {}, at most {})", format_percent(row.margin),
                         format_effect(look.estimate), format_effect(look.interval ? look.interval->high : 0));
    case LookVerdict::undecided: return undecided_words(row, decision);
  }
  return "";
}

std::string gate_problem_words(const GateProblem& problem) {
  const std::string words = one_line(problem.words);
  return problem.cell ? fmt::format("{}: {}", cell_label(*problem.cell), words) : words;
}

std::string gate_finding_words(const CounterFinding& finding) {
  return fmt::format("{}: {}", cell_label(finding.cell), one_line(finding.words));
}

std::vector<const GateRow*> rows_by_evidence(const GateDecision& decision) {
  std::vector<const GateRow*> rows;
  for (const GateRow& row : decision.rows) {
    rows.push_back(&row);
  }
  const auto key = [](const GateRow* row) {
    const LookContrast& look = row->look;
    const int rank = look.verdict == LookVerdict::slower ? 0 : look.verdict == LookVerdict::undecided ? 1 : 2;
    const double beyond = look.interval ? look.interval->high - std::log1p(row->margin) : HUGE_VAL;
    return std::tuple(rank, rank == 0 ? look.p_family : 0, rank == 0 ? -look.estimate : -beyond);
  };
  std::ranges::stable_sort(rows, {}, key);
  return rows;
}

std::vector<Table> gate_tables(const std::vector<const GateRow*>& rows) {
  std::vector<Table> tables;
  for (const GateRow* row : rows) {
    const std::string setting = row->cell ? one_line(setting_label(*row->cell), kTableWidth - 1) : "All cells together";
    auto table = std::ranges::find(tables, setting, &Table::title);
    // One table is easier to read: the composite stands with the cells where they have one setting.
    if (!row->cell && tables.size() == 1) {
      table = tables.begin();
    }
    if (table == tables.end()) {
      tables.push_back({.title = setting,
                        .columns = {{"Cell"},
                                    {"Effect", true},
                                    {"Interval", true},
                                    {"p", true},
                                    {"Margin", true},
                                    {"Verdict"},
                                    {"Detects", true}},
                        .rows = {},
                        .notes = {}});
      table = tables.end() - 1;
    }
    const LookContrast& look = row->look;
    table->rows.push_back({.fields = {one_line(gate_row_label(*row), kWidestCellLabel),
                                      look.interval ? format_effect(look.estimate) : "", interval_text(look.interval),
                                      look.interval ? format_p(look.p_family) : "", format_percent(row->margin),
                                      verdict_name(*row), look.mde ? format_detectable(*look.mde) : "none"}});
  }
  return tables;
}

std::vector<std::string> gate_notes(const GateDecision& decision) {
  std::vector<std::string> notes;
  for (const std::string& note : decision.notes) {
    notes.push_back(one_line(note));
  }
  if (decision.rows.empty()) {
    return notes;
  }
  notes.insert(
      notes.begin(),
      fmt::format("Effect: the candidate's time over the baseline's, less 1. Interval: {}, one cell by itself. p: "
                  "one-sided, of all {} rows together (max-T); below {} at this look is significant. Detects: found "
                  "in 4 of 5 gates of so many blocks and as many fresh ones.",
                  kIntervalWithLooks, decision.rows.size(),
                  decision.policy.looks.p_family_level(decision.rows.size())));
  notes.push_back(launch_order_note(decision));
  std::int64_t blocks = 0;
  std::int64_t void_blocks = 0;
  for (const GateRow& row : decision.rows) {
    blocks += row.blocks;
    void_blocks += row.void_blocks;
  }
  if (void_blocks > 0) {
    notes.push_back(fmt::format("{} of {} blocks are void: other processes used more than {} of the core time.",
                                void_blocks, blocks, format_percent(decision.policy.void_share)));
  }
  for (const GateRow* row : rows_by_evidence(decision)) {
    if (row->look.verdict != LookVerdict::slower || !row->fresh || row->fresh->values == 0) {
      continue;
    }
    notes.push_back(fmt::format("{}, measured again in {} fresh gate blocks: {} {} ({}).", gate_row_label(*row),
                                row->fresh->values, format_effect(row->fresh->estimate),
                                interval_text(row->fresh->interval), kIntervalWithLooks));
  }
  return notes;
}

}  // namespace decodelab
