// Files that a person names on the command line.
#pragma once

#include <string>

namespace decodelab {

/// The whole file. Throws std::invalid_argument that names the flag where it cannot be read; `advice` is the end of that sentence.
std::string read_file(const std::string& flag, const std::string& path, const std::string& advice = "");

/// Writes a file whole or not at all: a draft beside it takes its place when all is on the disk. What is no ordinary file (a pipe, a
/// terminal) is written to. Throws std::invalid_argument that names the flag where it cannot be written.
void write_file(const std::string& flag, const std::string& path, const std::string& text);

}  // namespace decodelab
