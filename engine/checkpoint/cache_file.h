// Names files of the cache folder, and writes them whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>

namespace decodelab {

/// Bytes left free on the disk for other uses.
inline constexpr std::uintmax_t kSpareCacheBytes = std::uintmax_t{1} << 30;

/// Returns 32 hexadecimal digits of two checksums.
std::string hex_digest(std::span<const std::byte> bytes);
std::string hex_digest(const std::string& text);

/// Writes the parts one after the other into a draft, waits until it is on the disk, and renames it to `target`.
/// Returns false, and leaves nothing behind, where any of that fails.
bool write_cache_file(const std::filesystem::path& target, std::initializer_list<std::span<const std::byte>> parts);

/// Returns a string that changes when a file is written to, even if its length stays the same: path, inode, size and
/// times. Throws std::invalid_argument where the file cannot be read.
std::string stamp_of(const std::filesystem::path& file);

}  // namespace decodelab
