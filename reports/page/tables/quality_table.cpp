// Writes qualities with their intervals.
#include "reports/page/tables/quality_table.h"

#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/units.h"
#include "reports/figures/bound.h"
#include "reports/statistics/quality.h"

namespace decodelab {
namespace {

bool is_known(const std::optional<QualityRecord>& quality) { return quality && quality->reason.empty(); }

std::string ratio_words(const QualityRecord& quality) {
  const double ratio = std::exp(quality.log_ratio);
  return fmt::format("x{:.4f} ± {:.4f}", ratio, kNormal95 * ratio * quality.log_ratio_error);
}

std::string kl_words(const QualityRecord& quality) {
  return fmt::format("{:.3g} ± {:.1g}", quality.kl_divergence, kNormal95 * quality.kl_divergence_error);
}

}  // namespace

std::string divergence_words(const SummaryRow& row) { return is_known(row.quality) ? kl_words(*row.quality) : ""; }

std::string perplexity_words(const SummaryRow& row) { return is_known(row.quality) ? ratio_words(*row.quality) : ""; }

std::string weights_words(const SummaryRow& row) {
  const auto bytes = per_step(row, "modelled_weight_bytes");
  return bytes ? format_bytes(static_cast<std::int64_t>(*bytes)) : "";
}

Table quality_table(const RunSummary& summary) {
  Table table{
      .title = "How well arms predict a text",
      .columns = {{"Arm"},
                  {"Tokens", true},
                  {"Perplexity", true},
                  {"Of fp32", true},
                  {"KL mean", true},
                  {"KL 99.9 %", true},
                  {"Same top", true},
                  {"RMS of p", true}},
      .rows = {},
      .notes = {"Each token is predicted from all before it in its row, by decode steps, beside the reference in "
                "fp32 on the same weights. ±: 1.96 standard errors over tokens. KL: of the arm's distribution "
                "from the reference's, in nats. Same top: both find the same token most probable. RMS of p: of "
                "the difference of the probability of the text's token."}};
  std::set<std::int64_t> arms;
  for (const SummaryRow& row : summary.rows) {
    if (!row.quality || !arms.insert(row.arm.id).second) {
      continue;
    }
    const QualityRecord& quality = *row.quality;
    if (!quality.reason.empty()) {
      table.notes.push_back(fmt::format("{}: {}.", row.arm.label, quality.reason));
      continue;
    }
    const double perplexity = std::exp(quality.log_perplexity);
    table.rows.push_back(
        {summary.run.id,
         0,
         {row.arm.label, std::to_string(quality.tokens),
          fmt::format("{:.3f} ± {:.3f}", perplexity, kNormal95 * perplexity * quality.log_perplexity_error),
          ratio_words(quality), kl_words(quality), fmt::format("{:.3g}", quality.kl_divergence_999),
          fmt::format("{:.1f} ± {:.1f} %", 100 * quality.top_1_agreement,
                      100 * kNormal95 * quality.top_1_agreement_error),
          fmt::format("{:.2f} %", 100 * quality.rms_probability)}});
  }
  return table;
}

}  // namespace decodelab
