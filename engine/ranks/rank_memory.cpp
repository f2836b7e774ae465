// Exchanges pieces through two buffers a rank, in the order of one counter.
#include "engine/ranks/rank_memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstring>
#include <ctime>
#include <mutex>
#include <new>
#include <thread>

#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/kernels/cpu_isa.h"
#include "engine/kernels/elementwise/add_parts.h"

namespace decodelab {
namespace {

constexpr std::uint64_t kMark = 0x6465636f64726b73;
/// How often whoever waits looks at once: about a millisecond. In between it lets others run, as those that it waits
/// for may be on the same core.
constexpr int kLooks = 20'000;
constexpr int kLooksBetweenYields = 64;
constexpr std::chrono::microseconds kSleep{50};
constexpr std::chrono::milliseconds kBetweenLooks{20};

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Looks for about a millisecond whether `done()`; returns whether it was.
template <typename Done>
bool looked(const Done& done) {
  for (int look = 1; look <= kLooks; ++look) {
    if (done()) {
      return true;
    }
    if (look % kLooksBetweenYields == 0) {
      sched_yield();
    } else {
      relax();
    }
  }
  return false;
}

}  // namespace

struct RankMemory::Shared {
  struct alignas(64) OfRank {
    std::atomic<std::uint64_t> posted;  ///< The last piece that the rank has written, or read where others wrote it.
    std::atomic<std::uint32_t> taken;   ///< Orders that it has copied.
    std::atomic<bool> ready;
  };

  std::uint64_t mark = kMark;
  std::int64_t ranks = 0;
  std::atomic<std::uint32_t> failing{0};  ///< Ranks that have failed, or try to.
  std::atomic<bool> failed{false};        ///< The message is there.
  std::array<char, 512> message{};
  alignas(64) std::atomic<std::uint32_t> sent{0};  ///< Orders that were sent; who waits for one sleeps on it.
  std::int64_t numbers = 0;                        ///< Of the last order.
  std::array<OfRank, kMostRanks> of_rank{};
  std::array<std::int64_t, kMostNumbers> order;
  // Behind it lie two buffers of kPieceBytes for each rank, and behind these a RangeLog for each. Where nobody writes,
  // there is no memory.

  static std::size_t before_logs(std::int64_t ranks) {
    return sizeof(Shared) + static_cast<std::size_t>(ranks) * 2 * kPieceBytes;
  }
  static std::size_t bytes(std::int64_t ranks) {
    return before_logs(ranks) + static_cast<std::size_t>(ranks) * sizeof(RangeLog);
  }
};

namespace {

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

}  // namespace

RankMemory::RankMemory(std::int64_t ranks) : rank_(0), ranks_(ranks) {
  if (ranks < 2 || ranks > kMostRanks) {
    throw std::invalid_argument(fmt::format("2 to {} ranks share memory, got {}", kMostRanks, ranks));
  }
  memory_ = std::make_shared<SharedMemory>(Shared::bytes(ranks));
  shared_ = new (memory_->data()) Shared;
  shared_->ranks = ranks;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    new (&log(rank)) RangeLog;
  }
}

RankMemory::RankMemory(int descriptor, std::int64_t rank) : rank_(rank), ranks_(0) {
  memory_ = std::make_shared<SharedMemory>(descriptor, Shared::bytes(2), "memory of ranks");
  shared_ = reinterpret_cast<Shared*>(memory_->data());
  ranks_ = shared_->ranks;
  if (shared_->mark != kMark || Shared::bytes(ranks_) != memory_->bytes() || rank < 1 || rank >= ranks_) {
    throw std::runtime_error(fmt::format("descriptor {} is no memory of a rank {}", descriptor, rank));
  }
}

RankMemory::RankMemory(const RankMemory& first, std::int64_t rank)
    : rank_(rank), ranks_(first.ranks_), memory_(first.memory_), shared_(first.shared_) {}

std::byte* RankMemory::buffer(std::int64_t rank, std::uint64_t sequence) const {
  auto* const buffers = memory_->data() + sizeof(Shared);
  return buffers + (static_cast<std::size_t>(rank) * 2 + sequence % 2) * kPieceBytes;
}

RangeLog& RankMemory::log(std::int64_t rank) const {
  auto* const logs = memory_->data() + Shared::before_logs(ranks_);
  return *(reinterpret_cast<RangeLog*>(logs) + rank);
}

template <typename Done>
void RankMemory::wait(const Done& done) {
  if (looked(done)) {
    return;
  }
  auto next_look = std::chrono::steady_clock::now() + kBetweenLooks;
  while (!done()) {
    check();
    if (const auto now = std::chrono::steady_clock::now(); look_ && now >= next_look) {
      look();
      next_look = now + kBetweenLooks;
    }
    std::this_thread::sleep_for(kSleep);
  }
}

void RankMemory::post(std::uint64_t sequence) {
  shared_->of_rank[static_cast<std::size_t>(rank_)].posted.store(sequence, std::memory_order_release);
}

void RankMemory::wait_for(std::int64_t rank, std::uint64_t sequence) {
  const std::atomic<std::uint64_t>& posted = shared_->of_rank[static_cast<std::size_t>(rank)].posted;
  wait([&] { return posted.load(std::memory_order_acquire) >= sequence; });
}

void RankMemory::wait_for_all(std::uint64_t sequence) {
  for (std::int64_t rank = 0; rank < ranks_; ++rank) {
    if (rank != rank_) {
      wait_for(rank, sequence);
    }
  }
}

void RankMemory::sum(std::span<std::byte> values, ElementType dtype) {
  std::array<const void*, kMostRanks> parts{};
  const std::size_t element = element_bytes(dtype);
  const CpuIsa isa = best_cpu_isa();
  while (!values.empty()) {
    const std::span<std::byte> piece = values.first(std::min(values.size(), kPieceBytes));
    // A piece may be written once every rank has posted the one before it, and so has read the one whose place it
    // takes.
    wait_for_all(sequence_);
    ++sequence_;
    std::memcpy(buffer(rank_, sequence_), piece.data(), piece.size());
    post(sequence_);
    wait_for_all(sequence_);
    for (std::int64_t rank = 0; rank < ranks_; ++rank) {
      parts[static_cast<std::size_t>(rank)] = buffer(rank, sequence_);
    }
    add_parts(piece.data(), std::span(parts).first(static_cast<std::size_t>(ranks_)),
              static_cast<std::int64_t>(piece.size() / element), dtype, isa);
    values = values.subspan(piece.size());
  }
}

void RankMemory::broadcast(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const std::span<std::byte> piece = bytes.first(std::min(bytes.size(), kPieceBytes));
    wait_for_all(sequence_);
    ++sequence_;
    if (rank_ == 0) {
      std::memcpy(buffer(0, sequence_), piece.data(), piece.size());
    } else {
      wait_for(0, sequence_);
      std::memcpy(piece.data(), buffer(0, sequence_), piece.size());
    }
    post(sequence_);
    bytes = bytes.subspan(piece.size());
  }
}

void RankMemory::gather(std::span<const std::byte> part, std::span<const std::size_t> firsts,
                        std::span<const std::size_t> counts, std::span<std::byte> whole) {
  std::size_t line_bytes = 0;
  std::size_t most = 0;
  for (const std::size_t count : counts) {
    line_bytes += count;
    most = std::max(most, count);
  }
  const std::size_t lines = part.size() / counts[static_cast<std::size_t>(rank_)];
  // Copies bytes [begin, begin + bytes) of a rank's lines to where they stand in all.
  const auto place = [&](std::size_t rank, const std::byte* from, std::size_t begin, std::size_t bytes) {
    while (bytes > 0) {
      const std::size_t line = begin / counts[rank];
      const std::size_t at = begin % counts[rank];
      const std::size_t here = std::min(bytes, counts[rank] - at);
      std::memcpy(whole.data() + line * line_bytes + firsts[rank] + at, from, here);
      from += here;
      begin += here;
      bytes -= here;
    }
  };
  const auto piece_of = [&](std::size_t rank, std::size_t begin) {
    const std::size_t bytes = lines * counts[rank];
    return begin < bytes ? std::min(bytes - begin, kPieceBytes) : 0;
  };
  if (rank_ == 0) {
    place(0, part.data(), 0, part.size());
  }
  for (std::size_t begin = 0; begin < lines * most; begin += kPieceBytes) {
    wait_for_all(sequence_);
    ++sequence_;
    if (rank_ == 0) {
      for (std::int64_t rank = 1; rank < ranks_; ++rank) {
        wait_for(rank, sequence_);
        const auto index = static_cast<std::size_t>(rank);
        place(index, buffer(rank, sequence_), begin, piece_of(index, begin));
      }
    } else {
      const std::size_t bytes = piece_of(static_cast<std::size_t>(rank_), begin);
      std::memcpy(buffer(rank_, sequence_), part.data() + std::min(begin, part.size()), bytes);
    }
    post(sequence_);
  }
}

void RankMemory::send(std::span<const std::int64_t> order) {
  if (std::ssize(order) > kMostNumbers) {
    throw std::length_error(fmt::format("an order of {} numbers does not fit into {}", order.size(), kMostNumbers));
  }
  check();
  settle();
  std::ranges::copy(order, shared_->order.begin());
  shared_->numbers = std::ssize(order);
  ++orders_;
  shared_->sent.store(orders_, std::memory_order_release);
  futex(shared_->sent, FUTEX_WAKE, INT_MAX, nullptr);
}

void RankMemory::settle() {
  for (std::int64_t rank = 1; rank < ranks_; ++rank) {
    const std::atomic<std::uint32_t>& taken = shared_->of_rank[static_cast<std::size_t>(rank)].taken;
    wait([&] { return taken.load(std::memory_order_acquire) == orders_; });
  }
}

std::vector<std::int64_t> RankMemory::receive() {
  const auto is_there = [&] { return shared_->sent.load(std::memory_order_acquire) != orders_; };
  looked(is_there);
  while (!is_there()) {
    look();
    const timespec timeout{.tv_sec = 0, .tv_nsec = 100'000'000};
    futex(shared_->sent, FUTEX_WAIT, orders_, &timeout);
  }
  const std::int64_t numbers = std::clamp<std::int64_t>(shared_->numbers, 0, kMostNumbers);
  std::vector<std::int64_t> order(shared_->order.begin(), shared_->order.begin() + numbers);
  ++orders_;
  shared_->of_rank[static_cast<std::size_t>(rank_)].taken.store(orders_, std::memory_order_release);
  return order;
}

void RankMemory::meet() {
  if (rank_ != 0) {
    shared_->of_rank[static_cast<std::size_t>(rank_)].ready.store(true, std::memory_order_release);
    return;
  }
  for (std::int64_t rank = 1; rank < ranks_; ++rank) {
    const std::atomic<bool>& ready = shared_->of_rank[static_cast<std::size_t>(rank)].ready;
    wait([&] { return ready.load(std::memory_order_acquire); });
  }
}

void RankMemory::fail(const std::string& why) {
  if (shared_->failing.fetch_add(1) == 0) {
    const std::size_t count = std::min(why.size(), shared_->message.size() - 1);
    std::copy_n(why.begin(), count, shared_->message.begin());
    shared_->failed.store(true, std::memory_order_release);
  }
  futex(shared_->sent, FUTEX_WAKE, INT_MAX, nullptr);
}

void RankMemory::look() {
  check();
  const std::lock_guard lock(looking_);
  if (look_) {
    look_();
  }
}

bool RankMemory::failed() const { return shared_->failed.load(std::memory_order_acquire); }

void RankMemory::check() const {
  if (failed()) {
    throw RankFailed(shared_->message.data());
  }
}

}  // namespace decodelab
