// Shares a file without a name, and sleeps on its semaphores.
#include "bench/measure/process/mailbox.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>
#include <stdexcept>

#include <fcntl.h>
#include <fmt/format.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace decodelab {
namespace {

/// A child's descriptors below this one are given other meanings before it starts.
constexpr int kFirstDescriptor = 10;

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(fmt::format("cannot {}: {}", what, std::strerror(errno)));
}

}  // namespace

/// One of each for each way: the first side sends by the first.
struct Mailbox::Shared {
  std::array<sem_t, 2> sent;
  std::array<std::int64_t, 2> counts;
  std::array<std::array<std::int64_t, kMostNumbers>, 2> numbers;
};

Mailbox::Mailbox() : first_side_(true) {
  const int made = memfd_create("mailbox", MFD_CLOEXEC);
  if (made < 0) {
    fail("make memory that a process shares");
  }
  descriptor_ = fcntl(made, F_DUPFD, kFirstDescriptor);
  close(made);
  if (descriptor_ < 0 || ftruncate(descriptor_, sizeof(Shared)) != 0) {
    fail("make memory that a process shares");
  }
  map();
  for (sem_t& semaphore : shared_->sent) {
    sem_init(&semaphore, 1, 0);
  }
}

Mailbox::Mailbox(int descriptor) : first_side_(false) {
  struct stat file{};
  if (fstat(descriptor, &file) != 0 || static_cast<std::size_t>(file.st_size) != sizeof(Shared)) {
    throw std::runtime_error(fmt::format("descriptor {} is no mailbox of another process", descriptor));
  }
  descriptor_ = dup(descriptor);
  map();
}

Mailbox::~Mailbox() {
  munmap(shared_, sizeof(Shared));
  close(descriptor_);
}

void Mailbox::map() {
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (memory == MAP_FAILED) {
    const int error = errno;
    close(descriptor_);
    errno = error;
    fail("share memory with a process");
  }
  shared_ = static_cast<Shared*>(memory);
}

void Mailbox::send(std::span<const std::int64_t> message) {
  if (std::ssize(message) > kMostNumbers) {
    throw std::length_error(fmt::format("a message of {} numbers does not fit into {}", message.size(), kMostNumbers));
  }
  const std::size_t way = first_side_ ? 0 : 1;
  std::ranges::copy(message, shared_->numbers[way].begin());
  shared_->counts[way] = std::ssize(message);
  sem_post(&shared_->sent[way]);
}

std::optional<std::vector<std::int64_t>> Mailbox::receive(int timeout_ms) {
  const std::size_t way = first_side_ ? 1 : 0;
  timespec end{};
  clock_gettime(CLOCK_REALTIME, &end);
  constexpr long kNanoseconds = 1'000'000'000;
  end.tv_sec += timeout_ms / 1000;
  end.tv_nsec += timeout_ms % 1000 * 1'000'000L;
  end.tv_sec += end.tv_nsec / kNanoseconds;
  end.tv_nsec %= kNanoseconds;
  while (sem_timedwait(&shared_->sent[way], &end) != 0) {
    if (errno != EINTR) {
      return std::nullopt;
    }
  }
  const auto begin = shared_->numbers[way].begin();
  const std::int64_t count = std::clamp<std::int64_t>(shared_->counts[way], 0, kMostNumbers);
  return std::vector<std::int64_t>(begin, begin + count);
}

}  // namespace decodelab
