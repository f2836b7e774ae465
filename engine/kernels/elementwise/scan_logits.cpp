// A pass over a row in blocks, then a look at the blocks that can hold the largest logits.
#include "engine/kernels/elementwise/scan_logits.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/round_up.h"
#include "engine/kernels/wide.h"

namespace decodelab {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();
constexpr std::int64_t kWidesOfABlock = kScanBlock / simd::kLanes;
/// Ties beyond n are kept up to so many times n logits in all.
constexpr std::int64_t kMostTies = 4;

/// Sixty-four logits in registers.
template <typename Element, std::int64_t N>
struct Block {
  using Wide = simd::Wide<N>;
  Wide wides[kWidesOfABlock];

  [[gnu::always_inline]] static Block load(const Element* from) {
    Block block;
#pragma GCC unroll 4
    for (std::int64_t index = 0; index < kWidesOfABlock; ++index) {
      block.wides[index] = simd::load_wide<N>(from + index * simd::kLanes);
    }
    return block;
  }

  /// Loads the first `count` < kScanBlock logits, and -infinity in the places of the others.
  [[gnu::always_inline]] static Block load(const Element* from, std::int64_t count) {
    Block block;
#pragma GCC unroll 4
    for (std::int64_t index = 0; index < kWidesOfABlock; ++index) {
      const std::int64_t left = std::max<std::int64_t>(count - index * simd::kLanes, 0);
      block.wides[index] =
          simd::cut(left > 0 ? simd::load_wide<N>(from + index * simd::kLanes, left) : Wide{}, left, kNone);
    }
    return block;
  }
};

template <typename Element, std::int64_t N>
struct Scan {
  using Floats = typename simd::Wide<N>::Part;
  using Ints = decltype(Floats{} < Floats{});

  /// What is added up over blocks, beside the scan itself.
  struct Counts {
    Ints greater{};
    Ints numbers{};  ///< That are some: g++ counts them in registers, where it looks for NaN lane by lane.
  };

  [[gnu::always_inline]] static void add(const Block<Element, N>& block, float asked_about, float* block_maximum,
                                         LogitScan& scan, Counts& counts) {
#pragma GCC unroll 4
    for (std::int64_t index = 0; index < kWidesOfABlock; ++index) {
#pragma GCC unroll 4
      for (std::int64_t part = 0; part < simd::Wide<N>::kParts; ++part) {
        const Floats& value = block.wides[index].parts[part];
        counts.greater -= value > asked_about;
        counts.numbers -= value == value;
      }
    }
    const float largest =
        simd::largest(simd::max(simd::max(block.wides[0], block.wides[1]), simd::max(block.wides[2], block.wides[3])));
    *block_maximum = largest;
    if (!(largest > kNone)) {
      return;
    }
    if (largest > scan.largest) {
      scan.sum *= std::exp(static_cast<double>(scan.largest) - static_cast<double>(largest));
      scan.largest = largest;
    }
    simd::Wide<N> sum = simd::exp(block.wides[0] - scan.largest);
#pragma GCC unroll 4
    for (std::int64_t index = 1; index < kWidesOfABlock; ++index) {
      sum += simd::exp(block.wides[index] - scan.largest);
    }
    scan.sum += static_cast<double>(simd::sum(sum));
  }

  [[gnu::always_inline]] static void run(const void* logits, std::int64_t first, std::int64_t last, float asked_about,
                                         float* block_maxima, LogitScan* found) {
    const auto* row = static_cast<const Element*>(logits);
    LogitScan scan;
    Counts counts;
    std::int64_t at = first;
    for (; at + kScanBlock <= last; at += kScanBlock) {
      add(Block<Element, N>::load(row + at), asked_about, block_maxima + at / kScanBlock, scan, counts);
    }
    if (at < last) {
      add(Block<Element, N>::load(row + at, last - at), asked_about, block_maxima + at / kScanBlock, scan, counts);
    }
    std::int64_t numbers = 0;
    for (std::int64_t lane = 0; lane < N; ++lane) {
      scan.greater += counts.greater[lane];
      numbers += counts.numbers[lane];
    }
    scan.has_nan = numbers != rounded_up(last - first, kScanBlock);
    *found = scan;
  }
};

/// Finds the logits that are at least `bound` in the blocks that have some.
template <typename Element, std::int64_t N>
struct Find {
  [[gnu::always_inline]] static void run(const void* logits, std::int64_t width, const float* block_maxima, float bound,
                                         std::vector<RankedLogit>* found) {
    const auto* row = static_cast<const Element*>(logits);
    for (std::int64_t first = 0; first < width; first += kScanBlock) {
      if (block_maxima[first / kScanBlock] < bound) {
        continue;
      }
      const auto block = width - first < kScanBlock ? Block<Element, N>::load(row + first, width - first)
                                                    : Block<Element, N>::load(row + first);
      float values[kScanBlock];
      for (std::int64_t index = 0; index < kWidesOfABlock; ++index) {
        simd::store_wide(values + index * simd::kLanes, block.wides[index]);
      }
      for (std::int64_t index = 0; index < kScanBlock; ++index) {
        if (values[index] >= bound && values[index] > kNone) {
          found->push_back({.logit = values[index], .id = first + index});
        }
      }
    }
  }
};

bool before(const RankedLogit& a, const RankedLogit& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; }

}  // namespace

bool LogitScan::is_distribution() const { return !has_nan && std::isfinite(largest); }

float LogitScan::log_prob(float logit) const {
  return static_cast<float>(static_cast<double>(logit) - static_cast<double>(largest) - std::log(sum));
}

LogitScan merged(const LogitScan& a, const LogitScan& b) {
  const LogitScan& larger = a.largest < b.largest ? b : a;
  const LogitScan& smaller = a.largest < b.largest ? a : b;
  LogitScan both = larger;
  if (smaller.sum > 0) {
    both.sum += smaller.sum * std::exp(static_cast<double>(smaller.largest) - static_cast<double>(larger.largest));
  }
  both.greater += smaller.greater;
  both.has_nan = a.has_nan || b.has_nan;
  return both;
}

LogitScan scan_logits(const void* row, ElementType dtype, std::int64_t first, std::int64_t last, float asked_about,
                      float* block_maxima, CpuIsa isa) {
  LogitScan found;
  simd::run_typed_wide<Scan>(dtype, isa, row, first, last, asked_about, block_maxima, &found);
  return found;
}

LargestLogits largest_of(std::vector<RankedLogit> some, std::int64_t n, Ties ties) {
  LargestLogits result{.logits = std::move(some)};
  std::vector<RankedLogit>& found = result.logits;
  std::erase_if(found, [](const RankedLogit& at) { return !(at.logit > kNone); });
  if (n < std::ssize(found)) {
    std::ranges::nth_element(found, found.begin() + std::max<std::int64_t>(n - 1, 0), before);
    // Behind the n-th come those that equal it, in no order, and smaller ones.
    const auto end =
        n == 0 ? found.begin() : std::partition(found.begin() + n, found.end(), [&](const RankedLogit& at) {
          return at.logit == found[static_cast<std::size_t>(n - 1)].logit;
        });
    result.tied = end != found.begin() + n;
    found.erase(ties == Ties::keep ? end : found.begin() + n, found.end());
  }
  const std::int64_t kept = std::min(std::ssize(found), kMostTies * n);
  result.truncated = kept < std::ssize(found);
  std::ranges::partial_sort(found, found.begin() + kept, before);
  found.resize(static_cast<std::size_t>(kept));
  return result;
}

LargestLogits largest_logits(const void* row, ElementType dtype, std::int64_t width,
                             std::span<const float> block_maxima, std::int64_t n, Ties ties, CpuIsa isa) {
  float bound = kNone;
  if (n < 1) {
    return {};
  }
  if (n <= std::ssize(block_maxima)) {
    std::vector<float> maxima(block_maxima.begin(), block_maxima.end());
    std::ranges::nth_element(maxima, maxima.begin() + (n - 1), std::greater());
    bound = maxima[static_cast<std::size_t>(n - 1)];
  }
  std::vector<RankedLogit> found;
  simd::run_typed_wide<Find>(dtype, isa, row, width, block_maxima.data(), bound, &found);
  return largest_of(std::move(found), n, ties);
}

float logit_at(const void* row, ElementType dtype, std::int64_t id) {
  switch (dtype) {
    case ElementType::float32: return static_cast<const float*>(row)[id];
    case ElementType::bfloat16: return simd::load_some(static_cast<const simd::Bfloat16*>(row) + id, 1)[0];
    case ElementType::float16: return simd::load_some(static_cast<const simd::Half*>(row) + id, 1)[0];
  }
  return kNone;
}

}  // namespace decodelab
