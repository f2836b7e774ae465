// Names cache files by checksums, and writes them as drafts that are renamed.
#include "engine/checkpoint/cache_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/checkpoint/checksum.h"
#include "engine/checkpoint/descriptor.h"

namespace decodelab {
namespace {

namespace fs = std::filesystem;

bool write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), std::min<std::size_t>(bytes.size(), std::size_t{1} << 30));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return false;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

/// Renames a finished file into place; removes it where that fails.
bool put_in_place(const std::string& draft, const fs::path& target) {
  std::error_code error;
  fs::rename(draft, target, error);
  if (error) {
    fs::remove(draft, error);
    return false;
  }
  return true;
}

}  // namespace

bool write_cache_file(const fs::path& target, std::initializer_list<std::span<const std::byte>> parts) {
  std::string draft = target.string() + ".tmp-XXXXXX";
  const Descriptor descriptor{::mkostemp(draft.data(), O_CLOEXEC)};
  if (descriptor.value < 0) {
    return false;
  }
  bool whole = ::fchmod(descriptor.value, 0644) == 0;
  for (const auto part : parts) {
    whole = whole && write_all(descriptor.value, part);
  }
  if (!whole || ::fdatasync(descriptor.value) != 0) {
    ::unlink(draft.c_str());
    return false;
  }
  return put_in_place(draft, target);
}

std::string hex_digest(std::span<const std::byte> bytes) {
  return fmt::format("{:016x}{:016x}", checksum_of(bytes, 1), checksum_of(bytes, 2));
}

std::string hex_digest(const std::string& text) { return hex_digest(std::as_bytes(std::span(text))); }

std::string stamp_of(const fs::path& file) {
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0) {
    throw std::invalid_argument(fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno)));
  }
  return fmt::format("{} {} {} {} {}.{} {}.{}\n", fs::canonical(file).string(), status.st_dev, status.st_ino,
                     status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
                     status.st_ctim.tv_nsec);
}

}  // namespace decodelab
