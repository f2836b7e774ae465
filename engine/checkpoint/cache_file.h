// Files of the cache folder: how they are named, and how they are written whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>

namespace decodelab {

/// Left free on the disk for everybody else.
inline constexpr std::uintmax_t kSpareCacheBytes = std::uintmax_t{1} << 30;

/// 32 hexadecimal digits of two checksums.
std::string hex_digest(std::span<const std::byte> bytes);
std::string hex_digest(const std::string& text);

/// Writes the parts one after the other into a draft, waits until it is on the disk, and renames it to `target`; false,
/// and nothing is left behind, where any of that fails.
bool write_cache_file(const std::filesystem::path& target, std::initializer_list<std::span<const std::byte>> parts);

/// What changes when somebody writes to a file, whether or not its length does: path, inode, size and times. Throws
/// std::invalid_argument where it cannot be read.
std::string stamp_of(const std::filesystem::path& file);

}  // namespace decodelab
