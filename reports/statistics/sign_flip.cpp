// Enumerates or draws sign patterns and counts how often they give a t as large as the one seen.
#include "reports/statistics/sign_flip.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include "reports/statistics/estimates.h"

namespace decodelab {
namespace {

constexpr std::size_t kMostLaunches = 64;  // bits of a pattern

// SplitMix64 (Steele, Lea and Flood 2014, doi:10.1145/2660193.2660195).
std::uint64_t next_draw(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  std::uint64_t value = state;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

}  // namespace

std::vector<std::uint64_t> sign_patterns(std::size_t launches) {
  if (launches > kMostLaunches) {
    throw std::invalid_argument(
        fmt::format("Sign flips are done for at most {} launches, got {}.", kMostLaunches, launches));
  }
  const bool all = launches <= kEnumeratedLaunches;
  std::vector<std::uint64_t> patterns(all ? std::size_t{1} << launches : kSignDraws);
  if (all) {
    for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i] = i;
    return patterns;
  }
  const std::uint64_t used = launches == kMostLaunches ? ~std::uint64_t{0} : (std::uint64_t{1} << launches) - 1;
  std::uint64_t state = launches;
  for (std::size_t i = 1; i < patterns.size(); ++i) patterns[i] = next_draw(state) & used & ~std::uint64_t{1};
  return patterns;
}

double flipped_t(std::span<const double> values, std::uint64_t pattern) {
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) continue;
    sum += (pattern >> i & 1) != 0 ? -values[i] : values[i];
    squares += values[i] * values[i];
    ++count;
  }
  if (count < 2 || squares == 0) return 0;
  // With n values the squares stay the same whatever the signs: s^2 (n - 1) = squares - sum^2 / n.
  const double spread = squares - sum * sum / count;
  const double t = spread <= squares * 1e-15 ? std::numeric_limits<double>::infinity()
                                             : std::abs(sum) / std::sqrt(spread * count / (count - 1));
  return decision_digits(t);
}

FamilyTest test_family(const std::vector<std::vector<double>>& contrasts) {
  FamilyTest test;
  if (contrasts.empty()) return test;
  const std::size_t launches = contrasts.front().size();
  std::vector<double> seen;
  for (const std::vector<double>& contrast : contrasts) {
    if (contrast.size() != launches) {
      throw std::invalid_argument(fmt::format("A family has one launch per place: {} in one contrast, {} in another.",
                                              launches, contrast.size()));
    }
    seen.push_back(flipped_t(contrast, 0));
  }
  std::vector<std::size_t> alone(contrasts.size());
  std::vector<std::size_t> together(contrasts.size());
  std::vector<double> largest;
  std::vector<double> flipped(contrasts.size());
  for (const std::uint64_t pattern : sign_patterns(launches)) {
    for (std::size_t j = 0; j < contrasts.size(); ++j) flipped[j] = flipped_t(contrasts[j], pattern);
    largest.push_back(*std::max_element(flipped.begin(), flipped.end()));
    for (std::size_t j = 0; j < contrasts.size(); ++j) {
      alone[j] += flipped[j] >= seen[j];
      together[j] += largest.back() >= seen[j];
    }
  }
  const double patterns = static_cast<double>(largest.size());
  for (std::size_t j = 0; j < contrasts.size(); ++j) {
    test.p.push_back(decision_digits(static_cast<double>(alone[j]) / patterns));
    test.p_adjusted.push_back(decision_digits(static_cast<double>(together[j]) / patterns));
  }
  // The smallest t whose share of patterns at or above it is within the level; beyond all of them where none is.
  std::sort(largest.begin(), largest.end(), std::greater<>());
  const auto allowed = static_cast<std::size_t>(kFamilyLevel * patterns);
  test.critical_t = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < allowed; ++i) {
    if (i + 1 == largest.size() || largest[i + 1] < largest[i]) test.critical_t = largest[i];
  }
  return test;
}

}  // namespace decodelab
