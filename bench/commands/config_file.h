// Flags from a file: `--config FILE`.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace decodelab {

/// Adds `--config FILE` to a command.
void add_config_option(CLI::App& command);

/// Returns the arguments of the program, followed by those from the file of `--config`: a TOML file of `flag = value`
/// without sections, with a list for a flag that may be repeated. A flag on the command line overrides the one in the
/// file. Arguments without `--config`, or of a command that has none, are returned as they are. Throws
/// std::invalid_argument for a file that cannot be read and for a key that is no flag of the command.
std::vector<std::string> with_config_file(const CLI::App& app, std::vector<std::string> arguments);

}  // namespace decodelab
