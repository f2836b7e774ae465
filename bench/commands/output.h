// How a run is printed on stdout.
#pragma once

#include <iosfwd>
#include <string>

#include "base/table.h"
#include "reports/store/record.h"

namespace decodelab {

/// The values of `-o`.
enum class OutputFormat { text, markdown, csv, json, jsonl };

/// Throws std::invalid_argument with the known formats for another name.
OutputFormat output_format(const std::string& name);

/// Returns the table with at most three lines of notes, and one that says how to see the others; unchanged where
/// `verbose`.
Table with_few_notes(Table table, bool verbose);

/// Returns an answer as it stands above everything else, wrapped, with an empty line behind it.
std::string answer_lines(const std::string& answer);

/// Prints the answer of a run, its rows and, where `verbose` or in Markdown, the latency tables. `store` is the file
/// that the command of the answer names.
void print_run(const RunData& data, OutputFormat format, std::ostream& out, const std::string& store, bool verbose);

}  // namespace decodelab
