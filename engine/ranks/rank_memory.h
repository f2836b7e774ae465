// Memory that the ranks of one machine share, and what they do with it: sums, parts that come together, and orders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/shared_memory.h"
#include "engine/kernels/element_type.h"
#include "engine/ranks/rank_failed.h"
#include "engine/ranks/rank_ranges.h"

namespace decodelab {

/// One rank's side of memory that all ranks, processes or threads, have mapped. It has no name, so that nothing is left
/// behind however they end. Every rank calls the same collective functions in the same order; each is called by one
/// thread.
///
/// A sum is made in one pass: each rank writes its numbers, says so, and adds the numbers of all ranks in the order of
/// ranks, so that all get the same bits. Two buffers a rank alternate, so that one wait a sum is enough. Whoever waits
/// spins for about a millisecond, and then sleeps in between.
class RankMemory {
 public:
  static constexpr std::int64_t kMostRanks = 64;
  static constexpr std::size_t kPieceBytes = std::size_t{1} << 18;     ///< What is exchanged at once.
  static constexpr std::int64_t kMostNumbers = std::int64_t{1} << 20;  ///< Of an order.

  /// Makes the memory, as rank 0. Throws std::invalid_argument for fewer than 2 ranks or more than kMostRanks, and
  /// std::runtime_error where there is no memory.
  explicit RankMemory(std::int64_t ranks);
  /// Opens it as another rank, by a descriptor that this process has from the first one. Throws std::runtime_error for
  /// any other descriptor.
  RankMemory(int descriptor, std::int64_t rank);
  /// Shares it as another rank, in a thread of the first one's process.
  RankMemory(const RankMemory& first, std::int64_t rank);
  RankMemory(const RankMemory&) = delete;
  RankMemory& operator=(const RankMemory&) = delete;

  std::int64_t rank() const { return rank_; }
  std::int64_t ranks() const { return ranks_; }
  /// Returns the descriptor, which children have too.
  int descriptor() const { return memory_->descriptor(); }
  /// Sets what is called about every 20 ms of a wait; it throws where another rank has ended.
  void set_look(std::function<void()> look) { look_ = std::move(look); }

  /// Replaces the numbers, `values.size()` bytes of `dtype`, by their sums over all ranks, which are computed in fp32
  /// and rounded once. Throws RankFailed.
  void sum(std::span<std::byte> values, ElementType dtype);
  /// Copies rank 0's bytes to all others. Throws RankFailed.
  void broadcast(std::span<std::byte> bytes);
  /// Copies each rank's lines to rank 0, side by side: a line of `part_bytes` of rank r stands at `first` of rank r in
  /// each line of `whole`. `firsts` and `counts` are those of all ranks, in bytes; `whole` is empty but on rank 0.
  /// Throws RankFailed.
  void gather(std::span<const std::byte> part, std::span<const std::size_t> firsts, std::span<const std::size_t> counts,
              std::span<std::byte> whole);

  /// Sends all other ranks an order of at most kMostNumbers numbers, from rank 0. Throws RankFailed.
  void send(std::span<const std::int64_t> order);
  /// Waits for the next order of rank 0. Throws RankFailed.
  std::vector<std::int64_t> receive();
  /// Waits on rank 0 until all others have begun with the last order, and so are done with those before it. Throws
  /// RankFailed.
  void settle();
  /// Returns where another rank than the first writes what it goes through.
  RangeLog& log(std::int64_t rank) const;
  /// Says that this rank is ready, and on rank 0 waits until all others are. Throws RankFailed.
  void meet();

  /// Lets all ranks fail with this message; the first one stays.
  void fail(const std::string& why);
  /// Returns whether a rank has failed.
  bool failed() const;
  /// Throws RankFailed where a rank has failed.
  void check() const;
  /// Throws RankFailed where a rank has failed or ended; from any thread.
  void look();

 private:
  struct Shared;

  std::byte* buffer(std::int64_t rank, std::uint64_t sequence) const;
  void post(std::uint64_t sequence);
  void wait_for(std::int64_t rank, std::uint64_t sequence);
  void wait_for_all(std::uint64_t sequence);
  template <typename Done>
  void wait(const Done& done);

  std::int64_t rank_;
  std::int64_t ranks_;
  std::shared_ptr<SharedMemory> memory_;
  Shared* shared_ = nullptr;    ///< At its beginning.
  std::uint64_t sequence_ = 0;  ///< Of the last piece that was exchanged.
  std::uint32_t orders_ = 0;    ///< That were sent or received.
  std::function<void()> look_{};
  std::mutex looking_{};
};

}  // namespace decodelab
