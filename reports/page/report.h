// Writes a report: the page, Markdown, JSON, CSV, and every figure as spec, SVG and PNG.
#pragma once

#include <filesystem>
#include <ostream>
#include <span>
#include <string>

#include "reports/store/record.h"

namespace decodelab {

/// Writes report.html, report.md, report.json, cells.csv, blocks.csv and figures/* into `out_dir`, which is created when it
/// is not there.
///
/// Files are written under temporary names and renamed when all of them are complete; older files of the same names are
/// replaced. report.json is the object of `sweep -o json`, and for several runs an object with `runs`, a list of them. Throws
/// std::invalid_argument for no run and, naming it, for a folder that cannot be written to. Sentences about what could not be
/// drawn go to `warnings`.
void write_report(std::span<const RunData> runs, const std::filesystem::path& out_dir, std::ostream& warnings);
void write_report(const RunData& run, const std::filesystem::path& out_dir, std::ostream& warnings);

/// The report as Markdown; pictures are links to figures/*.svg.
std::string to_markdown(std::span<const RunData> runs);

}  // namespace decodelab
