// Flags from a file: `--config FILE`.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace decodelab {

/// Adds `--config FILE` to a command.
void add_config_option(CLI::App& command);

/// The arguments of the program with those that the file of `--config` adds at the end: a TOML file of `flag = value`
/// without sections, a list for a flag that may be repeated. What stands on the command line goes before the file.
/// Arguments without `--config`, or of a command that has none, are returned as they are. Throws std::invalid_argument
/// for a file that cannot be read and for a key that is no flag of the command.
std::vector<std::string> with_config_file(const CLI::App& app, std::vector<std::string> arguments);

}  // namespace decodelab
