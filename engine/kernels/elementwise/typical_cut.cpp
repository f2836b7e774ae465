// Finds a weighted quantile of distances by the bits of their floating-point numbers.
#include "engine/kernels/elementwise/typical_cut.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace decodelab {
namespace {

/// Numbers that are not negative have the order of their bits: the upper 11 bits behind the sign name a bin, the next
/// 11 a finer one.
constexpr int kBinBits = 11;
constexpr std::uint32_t kBins = 1u << kBinBits;
constexpr int kCoarseShift = 31 - kBinBits;
constexpr int kFineShift = kCoarseShift - kBinBits;
/// Sums of up to 10^6 probabilities in any order differ by less.
constexpr double kSumError = 2e-10;

using Masses = std::array<double, kBins>;

struct Found {
  std::uint32_t bin = kBins;  ///< kBins: no bin reaches the mass.
  double before = 0;          ///< The mass of all bins before it.
};

/// Returns the first bin with which `target` is reached.
Found first_to_reach(const Masses& masses, double before, double target) {
  double sum = before;
  for (std::uint32_t bin = 0; bin < kBins; ++bin) {
    if (masses[bin] > 0 && sum + masses[bin] >= target) {
      return {.bin = bin, .before = sum};
    }
    sum += masses[bin];
  }
  return {};
}

struct Token {
  float distance;
  double probability;
};

}  // namespace

float entropy_of(const float* log_probs, const float* exponentials, std::int64_t width) {
  double sum = 0;
  for (std::int64_t id = 0; id < width; ++id) {
    const float product = log_probs[id] * exponentials[id];
    sum += exponentials[id] == 0 ? 0.0 : static_cast<double>(product);
  }
  return -static_cast<float>(sum);
}

std::optional<float> typical_cut(const float* log_probs, const float* probs, std::int64_t width, float entropy,
                                 float typical_p) {
  const auto bits_of = [&](std::int64_t id) {
    return std::bit_cast<std::uint32_t>(typical_distance(log_probs[id], entropy));
  };
  Masses masses{};
  std::uint32_t largest = 0;
  for (std::int64_t id = 0; id < width; ++id) {
    const std::uint32_t bits = bits_of(id);
    largest = std::max(largest, bits);
    masses[bits >> kCoarseShift & (kBins - 1)] += static_cast<double>(probs[id]);
  }
  if (largest > std::bit_cast<std::uint32_t>(std::numeric_limits<float>::infinity())) {
    return std::nullopt;  // Some distance is NaN.
  }
  // A sum reaches typical_p in fp32 from half a unit in the last place below it.
  const double below = static_cast<double>(std::nextafter(typical_p, 0.0f));
  const double target = (below + static_cast<double>(typical_p)) / 2;
  const Found coarse = first_to_reach(masses, 0, target - kSumError);
  if (coarse.bin == kBins) {
    return std::nullopt;
  }
  Masses finer{};
  for (std::int64_t id = 0; id < width; ++id) {
    if (const std::uint32_t bits = bits_of(id); bits >> kCoarseShift == coarse.bin) {
      finer[bits >> kFineShift & (kBins - 1)] += static_cast<double>(probs[id]);
    }
  }
  const Found fine = first_to_reach(finer, coarse.before, target - kSumError);
  if (fine.bin == kBins) {
    return std::nullopt;
  }
  std::vector<Token> tokens;
  for (std::int64_t id = 0; id < width; ++id) {
    if (bits_of(id) >> kFineShift == (coarse.bin << kBinBits | fine.bin)) {
      tokens.push_back({.distance = std::bit_cast<float>(bits_of(id)), .probability = static_cast<double>(probs[id])});
    }
  }
  std::ranges::stable_sort(tokens, {}, &Token::distance);
  double sum = fine.before;
  for (const Token& token : tokens) {
    sum += token.probability;
    if (std::abs(sum - target) <= kSumError) {
      return std::nullopt;
    }
    if (sum > target) {
      return token.distance;
    }
  }
  return std::nullopt;
}

}  // namespace decodelab
