// A read-only memory map of one file, unmapped by its destructor.
#include "engine/checkpoint/file_map.h"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/checkpoint/descriptor.h"

namespace decodelab {
namespace {

void unmap(std::span<const std::byte> bytes) {
  if (!bytes.empty()) {
    ::munmap(const_cast<std::byte*>(bytes.data()), bytes.size());
  }
}

}  // namespace

FileMap::FileMap(const std::filesystem::path& file) {
  const Descriptor descriptor{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  if (descriptor.value < 0) {
    throw std::invalid_argument(fmt::format("{}: cannot be opened: {}", file.string(), std::strerror(errno)));
  }
  struct stat status{};
  if (::fstat(descriptor.value, &status) != 0) {
    throw std::runtime_error(fmt::format("{}: its size is not to be had: {}", file.string(), std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    throw std::invalid_argument(fmt::format("{}: expected a file, got a directory or a device", file.string()));
  }
  if (status.st_size == 0) {
    return;  // mmap refuses a length of zero; an empty span says the same.
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.value, 0);
  if (address == MAP_FAILED) {
    throw std::runtime_error(
        fmt::format("{}: cannot be mapped ({} bytes): {}", file.string(), size, std::strerror(errno)));
  }
  bytes_ = {static_cast<const std::byte*>(address), size};
}

FileMap::~FileMap() { unmap(bytes_); }

FileMap::FileMap(FileMap&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

FileMap& FileMap::operator=(FileMap&& other) noexcept {
  if (this != &other) {
    unmap(bytes_);
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

}  // namespace decodelab
