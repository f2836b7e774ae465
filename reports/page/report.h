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

/// Returns the names of all formats, separated by commas; parse_report_formats() reads them as the set of all formats.
std::string report_format_names();
/// Reads a list of format names, separated by commas. Throws std::invalid_argument, which lists the known names, for an
/// unknown name and for an empty list.
std::set<ReportFormat> parse_report_formats(std::string_view names);

/// Writes report.html, report.md, report.json, cells.csv, blocks.csv and figures/* into `out_dir`, which is created
/// when it is not there.
///
/// `formats` chooses which of them are written: html is report.html, md is report.md, json is report.json, csv is
/// cells.csv, blocks.csv and, where the runs have traces, traces.csv; svg and png are the figures, each beside its spec
/// (figures/*.vl.json).
///
/// `smooth` adds a smoothed line to latency curves.
///
/// Files are written under temporary names and renamed when all of them are complete; older files of the same names are
/// replaced. report.json is the object of `sweep -o json` with `completions`, what each arm said to the first prompts,
/// and for several runs an object with `runs`, a list of them. Throws std::invalid_argument where `runs` is empty, and
/// where `out_dir`, which the message names, cannot be written to. Writes sentences about what could not be drawn to
/// `warnings`.
void write_report(std::span<const RunData> runs, const std::filesystem::path& out_dir, std::ostream& warnings,
                  const std::set<ReportFormat>& formats = parse_report_formats(report_format_names()),
                  bool smooth = false);
void write_report(const RunData& run, const std::filesystem::path& out_dir, std::ostream& warnings);

/// Returns the report as Markdown; pictures are links to figures/*.svg.
std::string to_markdown(std::span<const RunData> runs);

}  // namespace decodelab
