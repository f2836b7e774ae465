// Comparisons as one offline HTML file and as Markdown, for a reader who has seen neither run.
#pragma once

#include <filesystem>
#include <ostream>
#include <span>
#include <string>

#include "reports/page/comparison/comparison_page.h"

namespace decodelab {

/// Returns the page: what was compared and what came out, what differs between the two, ratios with their intervals,
/// counters and stages that moved, what only one side has, and how to read it. `drawing` is the SVG of the ratios;
/// empty where it could not be drawn. All text from outside is escaped, nothing is loaded, and there is no script.
std::string comparison_html(std::span<const RunComparison> comparisons, std::span<const std::string> drawings);
std::string comparison_markdown(std::span<const RunComparison> comparisons);

/// Writes compare.html, compare.md, compare.json (one object, or a list of them under `comparisons`) and figures/* into
/// `out_dir`, as write_report() does.
void write_comparison(std::span<const RunComparison> comparisons, const std::filesystem::path& out_dir,
                      std::ostream& warnings);

/// These return the two sentences that say what was compared with what, and how many rows have which reading.
std::string compared_sentence(const RunComparison& comparison);
std::string outcome_sentence(const RunComparison& comparison);

}  // namespace decodelab
