// Exchanges between ranks, in threads and in processes.
#include "engine/ranks/rank_memory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/kernels/elementwise/add_parts.h"
#include "engine/kernels/half.h"
#include "tests/engine/ranks/rank_threads.h"

namespace decodelab {
namespace {

using testing::in_rank_threads;

template <typename Number>
std::span<std::byte> bytes_of(std::vector<Number>& numbers) {
  return std::as_writable_bytes(std::span(numbers));
}

float value(std::int64_t rank, std::size_t index) {
  return static_cast<float>(rank + 1) + static_cast<float>(index % 13) * 0.25F;
}

TEST(RankMemory, EveryRankGetsTheSumsOfAllOfThem) {
  // Below a piece, just a piece, and several.
  for (const std::size_t count : {std::size_t{1}, std::size_t{577}, RankMemory::kPieceBytes / 4,
                                  RankMemory::kPieceBytes / 2 + 3, RankMemory::kPieceBytes}) {
    for (const std::int64_t ranks : {2, 3, 5}) {
      in_rank_threads(ranks, [&](RankMemory& memory) {
        std::vector<float> numbers(count);
        for (std::size_t index = 0; index < count; ++index) {
          numbers[index] = value(memory.rank(), index);
        }
        for (int repetition = 0; repetition < 3; ++repetition) {
          std::vector<float> sums = numbers;
          memory.sum(bytes_of(sums), ElementType::float32);
          for (std::size_t index = 0; index < count; index += 97) {
            float expected = 0;
            for (std::int64_t rank = 0; rank < ranks; ++rank) {
              expected += value(rank, index);
            }
            ASSERT_EQ(sums[index], expected);
          }
        }
      });
    }
  }
}

TEST(RankMemory, SumsOf16BitNumbersAreRoundedOnce) {
  const auto brain = [](float number) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number) >> 16);
  };
  in_rank_threads(3, [&](RankMemory& memory) {
    // 256 + 1 + 1: each sum by itself would be rounded to 256.
    std::vector<std::uint16_t> brains{brain(memory.rank() == 0 ? 256.0F : 1.0F)};
    memory.sum(bytes_of(brains), ElementType::bfloat16);
    EXPECT_EQ(brains[0], brain(258.0F));
    std::vector<std::uint16_t> halves{to_half(memory.rank() == 0 ? 2048.0F : 1.0F)};
    memory.sum(bytes_of(halves), ElementType::float16);
    EXPECT_EQ(from_half(halves[0]), 2050.0F);
  });
}

TEST(RankMemory, SumsHaveTheSameBitsWithEveryInstructionSet) {
  for (const ElementType dtype : {ElementType::float32, ElementType::float16, ElementType::bfloat16}) {
    // Every pattern of 16 bits, NaNs and infinities among them, and a count that fills no vector.
    constexpr std::int64_t kCount = 65'536 - 5;
    std::vector<std::uint16_t> first(2 * kCount);
    std::vector<std::uint16_t> second(2 * kCount);
    for (std::size_t index = 0; index < first.size(); ++index) {
      first[index] = static_cast<std::uint16_t>(index);
      second[index] = static_cast<std::uint16_t>(40'503 * index);
    }
    const std::array<const void*, 2> parts{first.data(), second.data()};
    const auto sums = [&](CpuIsa isa) {
      std::vector<std::uint16_t> added(first.size());
      add_parts(added.data(), parts, kCount, dtype, isa);
      return added;
    };
    const std::vector<std::uint16_t> expected = sums(CpuIsa::portable);
    for (const CpuIsa isa : {CpuIsa::avx2, CpuIsa::avx512}) {
      if (isa <= best_cpu_isa()) {
        EXPECT_EQ(sums(isa), expected) << to_string(isa);
      }
    }
  }
}

TEST(RankMemory, ASumWithANumberThatIsNoneIsNone) {
  const std::vector<std::uint16_t> nans{0x7f81, 0xffff};  // In bf16; rounded without care, they would be infinite or 0.
  const std::vector<std::uint16_t> zeros(2);
  std::vector<std::uint16_t> added(2);
  add_parts(added.data(), std::array<const void*, 2>{nans.data(), zeros.data()}, 2, ElementType::bfloat16,
            best_cpu_isa());
  for (const std::uint16_t bits : added) {
    EXPECT_GT(bits & 0x7fff, 0x7f80);
  }
}

TEST(RankMemory, TheFirstRanksBytesReachAllOthers) {
  in_rank_threads(3, [](RankMemory& memory) {
    std::vector<std::int64_t> numbers(300'000, memory.rank() == 0 ? 7 : 0);
    memory.broadcast(bytes_of(numbers));
    EXPECT_EQ(std::ranges::count(numbers, 7), 300'000);
  });
}

TEST(RankMemory, LinesOfDifferentLengthsComeTogetherSideBySide) {
  for (const std::size_t lines : {std::size_t{1}, std::size_t{5}, std::size_t{700}}) {
    in_rank_threads(3, [&](RankMemory& memory) {
      const std::vector<std::size_t> counts{400, 1200, 804};
      const std::vector<std::size_t> firsts{0, 400, 1600};
      const std::size_t own = counts[static_cast<std::size_t>(memory.rank())];
      std::vector<std::byte> part(lines * own);
      for (std::size_t index = 0; index < part.size(); ++index) {
        part[index] = static_cast<std::byte>(memory.rank() * 50 + static_cast<std::int64_t>(index / own) % 50);
      }
      std::vector<std::byte> whole(memory.rank() == 0 ? lines * 2404 : 0);
      for (int repetition = 0; repetition < 3; ++repetition) {
        memory.gather(part, firsts, counts, whole);
      }
      for (std::size_t index = 0; index < whole.size(); ++index) {
        const std::size_t at = index % 2404;
        const std::int64_t rank = at < 400 ? 0 : at < 1600 ? 1 : 2;
        ASSERT_EQ(whole[index], static_cast<std::byte>(rank * 50 + static_cast<std::int64_t>(index / 2404) % 50));
      }
    });
  }
}

TEST(RankMemory, ExchangesOfAllKindsMayFollowEachOther) {
  in_rank_threads(3, [](RankMemory& memory) {
    const std::vector<std::size_t> counts{4, 4, 4};
    const std::vector<std::size_t> firsts{0, 4, 8};
    for (int round = 0; round < 500; ++round) {
      std::vector<float> sum{static_cast<float>(memory.rank() + round)};
      std::vector<float> sent{memory.rank() == 0 ? static_cast<float>(round) : -1};
      memory.broadcast(bytes_of(sent));
      ASSERT_EQ(sent[0], static_cast<float>(round));
      memory.sum(bytes_of(sum), ElementType::float32);
      ASSERT_EQ(sum[0], static_cast<float>(3 + 3 * round));
      std::vector<float> whole(memory.rank() == 0 ? 3 : 0);
      std::vector<float> part{static_cast<float>(10 * memory.rank() + round)};
      memory.gather(bytes_of(part), firsts, counts, bytes_of(whole));
      if (memory.rank() == 0) {
        ASSERT_EQ(whole, (std::vector<float>{static_cast<float>(round), static_cast<float>(10 + round),
                                             static_cast<float>(20 + round)}));
      }
    }
  });
}

TEST(RankMemory, OrdersComeInTheirOrder) {
  in_rank_threads(3, [](RankMemory& memory) {
    for (std::int64_t number = 0; number < 300; ++number) {
      const std::vector<std::int64_t> order(static_cast<std::size_t>(number % 5), number);
      if (memory.rank() == 0) {
        memory.send(order);
      } else {
        ASSERT_EQ(memory.receive(), order);
      }
    }
  });
}

TEST(RankMemory, ARankThatFailsLetsAllFailWithItsMessage) {
  in_rank_threads(3, [](RankMemory& memory) {
    if (memory.rank() == 2) {
      memory.fail("rank 2 of 3: out of memory");
      memory.fail("a later message");
      return;
    }
    std::vector<float> numbers(10, 1);
    try {
      memory.sum(bytes_of(numbers), ElementType::float32);
      FAIL() << "no rank 2 was there to sum with";
    } catch (const RankFailed& error) {
      EXPECT_STREQ(error.what(), "rank 2 of 3: out of memory");
    }
  });
}

TEST(RankMemory, WhoeverWaitsLooksWhetherTheOthersLive) {
  RankMemory memory(2);
  memory.set_look([] { throw RankFailed("the process of rank 1 of 2 was killed by signal 9"); });
  std::vector<float> numbers(10, 1);
  EXPECT_THROW(memory.sum(bytes_of(numbers), ElementType::float32), RankFailed);
  EXPECT_THROW(memory.meet(), RankFailed);
}

TEST(RankMemory, AProcessOpensItByItsDescriptor) {
  RankMemory memory(2);
  const pid_t child = fork();
  if (child == 0) {
    RankMemory other(memory.descriptor(), 1);
    other.meet();
    std::vector<float> numbers{2};
    other.sum(bytes_of(numbers), ElementType::float32);
    _exit(numbers[0] == 3 && other.receive() == std::vector<std::int64_t>{4, 5} ? 0 : 1);
  }
  memory.meet();
  std::vector<float> numbers{1};
  memory.sum(bytes_of(numbers), ElementType::float32);
  EXPECT_EQ(numbers[0], 3);
  memory.send(std::vector<std::int64_t>{4, 5});
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(RankMemory, WhatIsNoMemoryOfRanksIsRefused) {
  EXPECT_THROW(RankMemory(STDERR_FILENO, 1), std::runtime_error);
  EXPECT_THROW(RankMemory(1), std::invalid_argument);
  EXPECT_THROW(RankMemory(RankMemory::kMostRanks + 1), std::invalid_argument);
  const RankMemory memory(2);
  EXPECT_THROW(RankMemory(memory.descriptor(), 2), std::runtime_error);
}

}  // namespace
}  // namespace decodelab
