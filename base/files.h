// Reads whole files, and replaces them whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace decodelab {

/// Returns the whole file, or nothing where it is missing, a folder, or not readable.
std::optional<std::string> read_if_there(const std::filesystem::path& path);

/// Returns the whole file that a person named with `flag`. Throws std::invalid_argument that names the flag where it
/// cannot be read; the message ends with `advice`.
std::string read_file(const std::string& flag, const std::string& path, const std::string& advice = "");

/// Returns the bytes of an untrusted file. Throws std::invalid_argument when it is missing or no regular file, or
/// larger than `limit_bytes`, and std::runtime_error when reading fails.
std::string read_text_file(const std::filesystem::path& file, std::uintmax_t limit_bytes);

/// Writes to a draft beside the file and renames the draft when it is complete, so that the file is replaced whole or
/// not at all. Writes directly to anything that is no ordinary file (a pipe, a terminal). Throws std::invalid_argument
/// that names the flag where the file cannot be written.
void write_file(const std::string& flag, const std::string& path, const std::string& text);

}  // namespace decodelab
