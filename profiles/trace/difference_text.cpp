// The difference of two traces as text.
#include <algorithm>

#include <fmt/format.h>

#include "base/table.h"
#include "profiles/trace/names.h"
#include "profiles/trace/text.h"
#include "profiles/trace/words.h"

namespace decodelab {
namespace {

constexpr std::size_t kMostRows = 15;

std::string signed_text(std::int64_t ns) { return (ns > 0 ? "+" : "") + grouped(ns); }

/// Shows the largest rows, the residual whatever its size, the other rows as one, and the sum, which is the difference
/// of the step.
std::string rows_text(const char* what, const std::vector<DifferenceRow>& rows, std::int64_t delta_ns) {
  Table table = names_and_numbers({what, "A ns/step", "B ns/step", "B - A", "change", "A calls", "B calls"});
  std::int64_t others_ns = 0;
  std::size_t others = 0;
  for (const DifferenceRow& row : rows) {
    if (row.delta_ns == 0 && row.change == Change::same) {
      continue;
    }
    const bool residual = row.kind == ShareKind::residual && row.name.empty();
    if (table.rows.size() >= kMostRows && !residual) {
      others_ns += row.delta_ns;
      ++others;
      continue;
    }
    const bool calls = row.a_calls > 0 || row.b_calls > 0;
    table.add({place_text(row), amount_text(row.a_ns), amount_text(row.b_ns), signed_text(row.delta_ns),
               to_string(row.change), calls ? amount_text(row.a_calls) : "", calls ? amount_text(row.b_calls) : ""});
  }
  if (others > 0) {
    table.add({fmt::format("others ({})", others), "", "", signed_text(others_ns), "", "", ""});
  }
  table.add({"sum", "", "", signed_text(delta_ns), "", "", ""});
  return to_text(table);
}

std::string amounts_text(const std::vector<DifferenceAmount>& amounts) {
  Table table = names_and_numbers({"per step", "A", "B"});
  for (const DifferenceAmount& amount : amounts) {
    if (amount.a != 0 || amount.b != 0) {
      table.add({amount.name, amount_text(amount.a), amount_text(amount.b)});
    }
  }
  return table.rows.empty() ? "" : "\n" + to_text(table);
}

}  // namespace

std::string place_text(const DifferenceRow& row) {
  if (row.kind == ShareKind::gap) {
    return fmt::format("gap: {}",
                       kGapCauseNames[std::min(static_cast<std::size_t>(row.cause), kGapCauseNames.size() - 1)]);
  }
  std::string text = row.kind == ShareKind::residual
                         ? "in no stage"
                         : kStageNames[std::min(static_cast<std::size_t>(row.stage), kStageNames.size() - 1)];
  // Foreign traces may have no stages: then the name says more than "other".
  if (row.kind == ShareKind::operation && row.stage == Stage::other && !row.name.empty()) {
    text.clear();
  }
  if (row.layer != kNoLayer) {
    text += fmt::format(" {}", row.layer);
  }
  if (!row.name.empty()) {
    text += (text.empty() ? "" : " ") + printable(short_name(row.name));
  }
  return text;
}

std::string difference_text(const TraceDifference& difference, const std::string& a, const std::string& b,
                            std::string_view heading) {
  std::string text =
      paragraph(heading, difference_sentence(difference, a, b), 2) + paragraph("A", a, 2) + paragraph("B", b, 2);
  if (!difference.refusal.empty()) {
    return text + paragraph("no difference:", difference.refusal, 2);
  }
  const double share = difference.a_step_ns > 0 ? static_cast<double>(difference.delta_ns) / difference.a_step_ns : 0;
  text += fmt::format("step {} ns in A ({} steps), {} ns in B ({} steps): {} ns ({:+.1f} %)\n\n",
                      amount_text(difference.a_step_ns), difference.a_steps, amount_text(difference.b_step_ns),
                      difference.b_steps, signed_text(difference.delta_ns), 100 * share);
  if (!difference.host_time_believable) {
    text += "tracing slowed the steps down: rows of kernels stand, those of gaps do not\n\n";
  }
  text += rows_text(difference.on_device ? "stage or gap" : "stage", difference.stages, difference.delta_ns) + "\n";
  text += rows_text(difference.on_device ? "kernel or gap" : "operator", difference.operations, difference.delta_ns);
  return text + amounts_text(difference.amounts);
}

}  // namespace decodelab
