// Reads JSON that nobody vouched for: depth-limited, no duplicate keys, and errors that name the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace decodelab {

/// A name or value out of a file, fit for a message: in single quotes, at most 80 bytes, every byte that is not
/// printable ASCII as \xNN.
std::string in_quotes(std::string_view text);

/// The value as a reader of a message wants to see it: compact JSON, cut and cleaned like in_quotes() but without
/// quotes around it.
std::string shown(const nlohmann::json& value);

/// Parses one JSON object.
///
/// Throws std::invalid_argument (and no exception of nlohmann's) naming `file_name` for malformed JSON or UTF-8, a
/// number out of range, a key that stands twice in one object, more than 64 levels, or a top level that is no object.
nlohmann::json parse_json_object(std::string_view text, const std::string& file_name);

/// Throws std::invalid_argument naming `place` for a key of `object` that is not in `known`: it could change what the
/// rest means.
void check_keys(const nlohmann::json& object, std::span<const std::string_view> known, const std::string& place);

/// The bytes of a file. Throws std::invalid_argument when it is missing or no regular file, or larger than
/// `limit_bytes`, and std::runtime_error when reading fails.
std::string read_text_file(const std::filesystem::path& file, std::uintmax_t limit_bytes);

}  // namespace decodelab
