// The table of sections.
#include "reports/page/sections/section.h"
#include "reports/page/tables/completions_table.h"

namespace decodelab {
namespace {

template <FigureSection section>
std::string only_figures(const SectionContext& context) {
  return figures_html(context, section);
}

std::string latency_section(const SectionContext& context) {
  if (context.run.figures.empty()) {
    return "<p>Nothing was measured, so there is nothing to draw.</p>\n";
  }
  return figures_html(context, FigureSection::latency);
}

std::string says_section(const SectionContext& context) {
  const Table table = completions_table(*context.run.data);
  return table.rows.empty() ? "" : to_html(table);
}

constexpr Section kSections[] = {
    {"changed", "what changed", "What changed", only_figures<FigureSection::changed>},
    {"figures", "latency", "Latency", latency_section},
    {"ablation", "ablation", "Ablation", only_figures<FigureSection::ablation>},
    {"speedup", "speed-up", "Speed-up by batch and length", only_figures<FigureSection::speedup>},
    {"throughput", "throughput", "Throughput against latency", only_figures<FigureSection::throughput>},
    {"breakdown", "where the time goes", "Where the time goes", breakdown_section},
    {"distributions", "distributions", "Distributions", only_figures<FigureSection::distributions>},
    {"says", "what it says", "What it says", says_section},
    {"tables", "tables", "Tables", tables_section},
    {"trust", "trust", "Trust", trust_section},
    {"traces", "traces", "Traces", traces_section},
};

}  // namespace

std::span<const Section> sections() { return kSections; }

}  // namespace decodelab
