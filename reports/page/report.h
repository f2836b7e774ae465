// Writes a report: the page, Markdown, JSON, CSV, and every figure as spec, SVG and PNG.
#pragma once

#include <filesystem>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "reports/store/record.h"

namespace decodelab {

/// Parts of a report, by the names that `--format` takes: html, md, json, csv, svg, png.
enum class ReportFormat { html, markdown, json, csv, svg, png };

/// Names of all formats, separated by commas; also what parse_report_formats() takes to mean all of them.
std::string report_format_names();
/// Throws std::invalid_argument, with the names that there are, for a name that is none and for an empty list.
std::set<ReportFormat> parse_report_formats(std::string_view names);

/// Writes report.html, report.md, report.json, cells.csv, blocks.csv and figures/* into `out_dir`, which is created
/// when it is not there.
///
/// `formats` keeps some of them: html is report.html, md is report.md, json is report.json, csv is cells.csv,
/// blocks.csv and, where the runs have traces, traces.csv; svg and png are the figures, each beside its spec
/// (figures/*.vl.json).
///
/// `smooth` adds a smoothed line to latency curves.
///
/// Files are written under temporary names and renamed when all of them are complete; older files of the same names are
/// replaced. report.json is the object of `sweep -o json`, and for several runs an object with `runs`, a list of them.
/// Throws std::invalid_argument for no run and, naming it, for a folder that cannot be written to. Sentences about what
/// could not be drawn go to `warnings`.
void write_report(std::span<const RunData> runs, const std::filesystem::path& out_dir, std::ostream& warnings,
                  const std::set<ReportFormat>& formats = parse_report_formats(report_format_names()),
                  bool smooth = false);
void write_report(const RunData& run, const std::filesystem::path& out_dir, std::ostream& warnings);

/// The report as Markdown; pictures are links to figures/*.svg.
std::string to_markdown(std::span<const RunData> runs);

}  // namespace decodelab
