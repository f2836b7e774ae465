// Files of packed weights: a head with the key and the checksums, then the pieces.
#include "engine/checkpoint/packed_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "engine/checkpoint/cache_file.h"
#include "engine/checkpoint/checksum.h"
#include "engine/checkpoint/file_map.h"
#include "engine/checkpoint/synthetic_cache.h"

namespace decodelab {
namespace {

namespace fs = std::filesystem;

/// Version of the file format: files with another number are not read.
constexpr char kMagic[8] = {'d', 'l', 'p', 'a', 'c', 'k', '0', '1'};
/// Where pieces begin: a page, so that reads are aligned.
constexpr std::size_t kPage = 4096;
constexpr const char* kUsedFile = "used";  ///< Its modification time says when a checkpoint's folder was last used.

bool read_all(int descriptor, std::span<std::byte> bytes, std::size_t offset) {
  while (!bytes.empty()) {
    const ssize_t count = ::pread(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return false;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::size_t>(count);
  }
  return true;
}

/// Returns what precedes the pieces. The checksum of the head itself follows the key.
std::vector<std::byte> head_of(const std::string& key, std::size_t piece_bytes,
                               const std::vector<std::uint64_t>& checksums) {
  std::vector<std::byte> head;
  const auto add = [&head](const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::byte*>(data);
    head.insert(head.end(), bytes, bytes + size);
  };
  const std::uint64_t sizes[] = {key.size(), piece_bytes, checksums.size()};
  add(kMagic, sizeof kMagic);
  add(sizes, sizeof sizes);
  add(key.data(), key.size());
  add(checksums.data(), checksums.size() * sizeof(std::uint64_t));
  const std::uint64_t own = checksum_of(head);
  add(&own, sizeof own);
  head.resize((head.size() + kPage - 1) / kPage * kPage);
  return head;
}

/// Returns the checkpoint's weight files, sorted by name: those of a directory, or a GGUF file itself.
std::vector<fs::path> weight_files(const fs::path& checkpoint) {
  if (fs::is_regular_file(checkpoint)) {
    return {checkpoint};
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(checkpoint)) {
    if (entry.path().extension() == ".safetensors") {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  if (files.empty()) {
    throw std::invalid_argument(
        fmt::format("{}: expected files of weights (*.safetensors), got none", checkpoint.string()));
  }
  return files;
}

std::uintmax_t bytes_in(const fs::path& folder) {
  std::uintmax_t total = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    const std::uintmax_t size = entry->is_regular_file(ignored) ? entry->file_size(ignored) : 0;
    total += ignored ? 0 : size;
  }
  return total;
}

}  // namespace

std::string weights_digest(const fs::path& checkpoint, const fs::path& cache_directory) {
  const std::vector<fs::path> files = weight_files(checkpoint);
  std::string stamps;
  for (const fs::path& file : files) {
    stamps += stamp_of(file);
  }
  const fs::path remembered = cache_directory / "digests" / hex_digest(stamps);
  constexpr std::size_t kDigits = 32;
  std::string known;
  if (std::ifstream(remembered) >> known && known.size() == kDigits) {
    return known;
  }
  std::string digests;
  for (const fs::path& file : files) {
    const FileMap map(file);
    digests += file.filename().string() + " " + hex_digest(map.bytes()) + "\n";
  }
  const std::string digest = hex_digest(digests);
  std::error_code ignored;
  fs::create_directories(remembered.parent_path(), ignored);
  write_cache_file(remembered, {std::as_bytes(std::span(digest))});
  return digest;
}

PackedFile::~PackedFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

PackedFile::PackedFile(PackedFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      first_byte_(other.first_byte_),
      checksums_(std::move(other.checksums_)) {}

bool PackedFile::read(std::size_t piece, std::span<std::byte> bytes) const {
  return read_all(descriptor_, bytes, first_byte_ + piece * bytes.size()) && checksum_of(bytes) == checksums_.at(piece);
}

const fs::path& PackedFiles::folder() {
  std::call_once(found_, [&] {
    try {
      const fs::path folder = cache_directory_ / "packed" / weights_digest(checkpoint_, cache_directory_);
      fs::create_directories(folder);
      std::ofstream(folder / kUsedFile) << checkpoint_.string() << '\n';
      folder_ = folder;
    } catch (const std::exception&) {
      folder_.clear();
    }
  });
  return folder_;
}

std::optional<PackedFile> PackedFiles::open(const std::string& name, std::size_t piece_bytes, std::size_t pieces) {
  const std::string key = part_ + name;
  if (piece_bytes * pieces < kWorthKeeping || folder().empty()) {
    return std::nullopt;
  }
  PackedFile file(::open((folder() / hex_digest(key)).c_str(), O_RDONLY | O_CLOEXEC), 0, {});
  if (file.descriptor_ < 0) {
    return std::nullopt;
  }
  // The file must begin with exactly the head that the key, the sizes and the stored checksums produce.
  std::vector<std::uint64_t> checksums(pieces);
  const std::size_t before = sizeof kMagic + 3 * sizeof(std::uint64_t) + key.size();
  std::vector<std::byte> head = head_of(key, piece_bytes, checksums);
  file.first_byte_ = head.size();
  if (!read_all(file.descriptor_, head, 0)) {
    return std::nullopt;
  }
  std::memcpy(checksums.data(), head.data() + before, pieces * sizeof(std::uint64_t));
  if (head != head_of(key, piece_bytes, checksums)) {
    return std::nullopt;
  }
  file.checksums_ = std::move(checksums);
  return file;
}

void PackedFiles::keep(const std::string& name, std::span<const std::byte> bytes, std::size_t piece_bytes) {
  const std::string key = part_ + name;
  if (bytes.size() < kWorthKeeping || folder().empty()) {
    return;
  }
  try {
    make_room(bytes.size());
    require_free_bytes(folder(), bytes.size() + kSpareCacheBytes);
  } catch (const std::runtime_error&) {
    return;  // there is no room: the weight is packed again the next time
  }
  std::vector<std::uint64_t> checksums;
  for (std::size_t first = 0; first < bytes.size(); first += piece_bytes) {
    checksums.push_back(checksum_of(bytes.subspan(first, piece_bytes)));
  }
  const std::vector<std::byte> head = head_of(key, piece_bytes, checksums);
  write_cache_file(folder() / hex_digest(key), {std::span(head), bytes});
}

void PackedFiles::make_room(std::uintmax_t bytes) const {
  const fs::path all = folder_.parent_path();
  std::uintmax_t held = bytes_in(all);
  std::vector<std::pair<fs::file_time_type, fs::path>> others;
  for (const auto& entry : fs::directory_iterator(all)) {
    if (entry.path() != folder_) {
      std::error_code never_used;
      others.emplace_back(fs::last_write_time(entry.path() / kUsedFile, never_used), entry.path());
    }
  }
  std::ranges::sort(others);
  for (const auto& [used, other] : others) {
    if (held + bytes <= most_bytes_) {
      return;
    }
    held -= std::min(held, bytes_in(other));
    fs::remove_all(other);
  }
  if (held + bytes > most_bytes_) {
    throw std::runtime_error("this checkpoint alone fills the cache of packed weights");
  }
}

}  // namespace decodelab
