// A read-only memory map of one file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace decodelab {

/// Maps a file into memory without reading it: pages are loaded when they are touched.
///
/// Throws std::invalid_argument when the file is missing or no regular file, std::runtime_error when the system
/// refuses. A file that is cut short while mapped raises SIGBUS on access; checkpoints are written by rename, which
/// leaves an open map on the old bytes.
class FileMap {
 public:
  explicit FileMap(const std::filesystem::path& file);
  ~FileMap();
  FileMap(FileMap&& other) noexcept;
  FileMap& operator=(FileMap&& other) noexcept;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace decodelab
