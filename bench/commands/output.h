// How a run is printed on stdout.
#pragma once

#include "reports/store/record.h"

#include <iosfwd>
#include <string>

namespace decodelab {

/// The values of `-o`.
enum class OutputFormat { text, markdown, csv, json, jsonl };

/// Throws std::invalid_argument with the known formats for another name.
OutputFormat output_format(const std::string& name);

/// Prints the rows of a run.
void print_run(const RunData& data, OutputFormat format, std::ostream& out);

}  // namespace decodelab
