// Copies messages into shared memory and out of it, and sleeps on its semaphores.
#include "bench/measure/process/mailbox.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <stdexcept>

#include <fmt/format.h>
#include <semaphore.h>

namespace decodelab {
/// One of each for each way: the first side sends by the first.
struct Mailbox::Shared {
  std::array<sem_t, 2> sent;
  std::array<std::int64_t, 2> counts;
  std::array<std::array<std::int64_t, kMostNumbers>, 2> numbers;
};

Mailbox::Mailbox() : memory_(sizeof(Shared)), first_side_(true), shared_(reinterpret_cast<Shared*>(memory_.data())) {
  for (sem_t& semaphore : shared_->sent) {
    sem_init(&semaphore, 1, 0);
  }
}

Mailbox::Mailbox(int descriptor)
    : memory_(descriptor, sizeof(Shared), "mailbox of another process"),
      first_side_(false),
      shared_(reinterpret_cast<Shared*>(memory_.data())) {}

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
