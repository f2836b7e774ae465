// The report as one HTML file that needs no network and no JavaScript.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "reports/figures/figure.h"
#include "reports/statistics/summary.h"
#include "reports/store/record.h"

namespace decodelab {

/// One run with everything that the page shows of it. `prefix` keeps the names of figures of several runs apart; empty
/// for a single run.
struct RunReport {
  const RunData* data = nullptr;
  RunSummary summary;
  std::vector<Figure> figures;
  std::string prefix;
};

/// Returns the whole page: what was compared and what it resolves, curves, ratios, tables, trust, environment,
/// glossary, how to repeat it.
///
/// `drawings` holds the SVG of each figure by its prefix and name; a figure without one appears only where JavaScript
/// runs. All text from outside is escaped, and nothing is loaded: a content security policy forbids it. A page that
/// would be larger than 2.5 MB leaves out the data tables of figures and the trust rows in which nothing is remarkable.
std::string page_html(std::span<const RunReport> runs, const std::map<std::string, std::string>& drawings);

}  // namespace decodelab
