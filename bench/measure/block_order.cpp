// Draws the order of a block with SplitMix64 as a hash of its keys and a counter.
#include "bench/measure/block_order.h"

#include <numeric>
#include <utility>

namespace decodelab {
namespace {

/// SplitMix64: value k is `mix(state + (k + 1) * gamma)`, so any value can be had without those before it (Steele, Lea
/// and Flood 2014, "Fast splittable pseudorandom number generators", doi:10.1145/2660193.2660195; constants of Vigna's
/// splitmix64.c, variant 13 of Stafford).
constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15;

std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

class BlockRng final {
 public:
  BlockRng(std::uint64_t seed, std::uint64_t cell, std::uint64_t launch, std::uint64_t block) {
    for (const std::uint64_t key : {seed, cell, launch, block}) {
      state_ = mix((state_ ^ key) + kGamma);  // Mixed between the keys, so that (1, 2) and (2, 1) differ.
    }
  }

  /// Uniform over [0, bound): values of the last, incomplete round of `bound` are drawn again.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t incomplete = (0 - bound) % bound;  // 2^64 mod bound.
    while (true) {
      const std::uint64_t value = mix(state_ + ++counter_ * kGamma);
      if (value >= incomplete) {
        return value % bound;
      }
    }
  }

 private:
  std::uint64_t state_ = 0;
  std::uint64_t counter_ = 0;
};

}  // namespace

std::vector<std::size_t> mirrored_order(std::size_t arms, std::uint64_t seed, std::uint64_t cell, std::uint64_t launch,
                                        std::uint64_t block) {
  std::vector<std::size_t> order(arms);
  std::iota(order.begin(), order.end(), std::size_t{0});
  BlockRng rng(seed, cell, launch, block);
  for (std::size_t left = arms; left > 1; --left) {  // Fisher-Yates, as in Knuth, TAOCP 2, algorithm 3.4.2 P.
    std::swap(order[left - 1], order[rng.below(left)]);
  }
  order.reserve(2 * arms);
  for (std::size_t i = arms; i > 0; --i) {
    order.push_back(order[i - 1]);
  }
  return order;
}

}  // namespace decodelab
