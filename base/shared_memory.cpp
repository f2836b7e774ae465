// Makes, opens and maps files without a name.
#include "base/shared_memory.h"

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace decodelab {
namespace {

/// A child's descriptors below this one are given other meanings before it starts.
constexpr int kFirstDescriptor = 10;

/// Closes the descriptor, and says why memory cannot be shared.
[[noreturn]] void refuse(int descriptor) {
  const int error = errno;
  close(descriptor);
  throw std::runtime_error(fmt::format("cannot share memory between processes: {}", std::strerror(error)));
}

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes) : bytes_(bytes) {
  const int made = memfd_create("decodelab", MFD_CLOEXEC);
  if (made < 0) {
    refuse(made);
  }
  descriptor_ = fcntl(made, F_DUPFD, kFirstDescriptor);
  if (descriptor_ < 0) {
    refuse(made);
  }
  close(made);
  if (ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) {
    refuse(descriptor_);
  }
  map();
}

SharedMemory::SharedMemory(int descriptor, std::size_t least, std::string_view what) {
  struct stat file{};
  if (fstat(descriptor, &file) != 0 || static_cast<std::size_t>(file.st_size) < least) {
    throw std::runtime_error(fmt::format("descriptor {} is no {}", descriptor, what));
  }
  bytes_ = static_cast<std::size_t>(file.st_size);
  descriptor_ = dup(descriptor);
  map();
}

SharedMemory::~SharedMemory() {
  munmap(data_, bytes_);
  close(descriptor_);
}

void SharedMemory::map() {
  void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (memory == MAP_FAILED) {
    refuse(descriptor_);
  }
  data_ = static_cast<std::byte*>(memory);
}

}  // namespace decodelab
