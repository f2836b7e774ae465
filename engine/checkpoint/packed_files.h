// Keeps packed weights of a checkpoint in the cache folder, so that a launch reads them instead of packing them again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace decodelab {

/// Returns 32 hexadecimal digits of the contents of a checkpoint directory's safetensors files.
///
/// The files are read once and their digest is stored in `cache_directory`/digests by path, size, inode and times, so
/// that they are read again when any of these changes. Throws std::invalid_argument where there are no weights.
std::string weights_digest(const std::filesystem::path& checkpoint, const std::filesystem::path& cache_directory);

/// Refers to one packed weight on disk: pieces of equal size, each with a checksum.
class PackedFile {
 public:
  ~PackedFile();
  PackedFile(PackedFile&& other) noexcept;
  PackedFile& operator=(PackedFile&&) = delete;

  /// Reads a piece into `bytes`, which has the size of a piece; returns false where the disk fails or the piece differs
  /// from what was written. Threads may read different pieces at once.
  bool read(std::size_t piece, std::span<std::byte> bytes) const;

 private:
  friend class PackedFiles;
  PackedFile(int descriptor, std::size_t first_byte, std::vector<std::uint64_t> checksums)
      : descriptor_(descriptor), first_byte_(first_byte), checksums_(std::move(checksums)) {}

  int descriptor_;
  std::size_t first_byte_;
  std::vector<std::uint64_t> checksums_;
};

/// Stores the packed weights of one checkpoint in `cache_directory`/packed/DIGEST, one file per weight. What cannot be
/// read or kept is treated as missing: nothing here throws but std::bad_alloc.
class PackedFiles {
 public:
  /// Weights below this many bytes are packed in less time than a file is opened.
  static constexpr std::size_t kWorthKeeping = std::size_t{1} << 20;
  /// Limit on the bytes of all packed weights of all checkpoints; beyond it the checkpoints that were not used for
  /// longest are removed.
  static constexpr std::uintmax_t kMostBytes = std::uintmax_t{64} << 30;

  /// `part` says which part of the checkpoint's weights these are, and stands before every key; empty: the whole.
  PackedFiles(std::filesystem::path checkpoint, std::filesystem::path cache_directory, std::string part = "",
              std::uintmax_t most_bytes = kMostBytes)
      : checkpoint_(std::move(checkpoint)),
        cache_directory_(std::move(cache_directory)),
        part_(std::move(part)),
        most_bytes_(most_bytes) {}

  /// Opens what was kept under `name`, which stands for all that the bytes depend on besides the checkpoint's content
  /// (weight, shape, dtype, order and its version). Returns nothing where it is missing or has other pieces.
  std::optional<PackedFile> open(const std::string& name, std::size_t piece_bytes, std::size_t pieces);
  /// Writes `bytes` under `name`, replacing what is there, and returns when they are on the disk, so that no later
  /// write disturbs a timed step. A reader sees the old file or the new one.
  void keep(const std::string& name, std::span<const std::byte> bytes, std::size_t piece_bytes);

 private:
  /// Returns the checkpoint's folder, determined once; empty where there can be none.
  const std::filesystem::path& folder();
  void make_room(std::uintmax_t bytes) const;

  std::filesystem::path checkpoint_;
  std::filesystem::path cache_directory_;
  std::string part_;
  std::uintmax_t most_bytes_;
  std::once_flag found_;
  std::filesystem::path folder_;
};

}  // namespace decodelab
