// Enumerates or draws sign patterns and counts how often they give a t as large as the one seen.
#include "reports/statistics/sign_flip.h"

#include <algorithm>
#include <array>
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

// With n values the squares stay the same whatever the signs: s^2 (n - 1) = squares - sum^2 / n.
inline double t_of(double sum, double squares, double count) {
  if (count < 2 || squares == 0) {
    return 0;
  }
  const double spread = squares - sum * sum / count;
  const double t = spread <= squares * 1e-15 ? std::copysign(std::numeric_limits<double>::infinity(), sum)
                                             : sum / std::sqrt(spread * count / (count - 1));
  return decision_digits(t);
}

// The sum of the values under a pattern, from tables of what each byte of the pattern adds: a family is summed up
// 65,536 times.
class FlippedSums {
 public:
  explicit FlippedSums(std::span<const double> values) : tables_((values.size() + kBits - 1) / kBits) {
    for (std::size_t byte = 0; byte < tables_.size(); ++byte) {
      for (std::size_t signs = 0; signs < kPatterns; ++signs) {
        double sum = 0;
        for (std::size_t bit = 0; bit < kBits && byte * kBits + bit < values.size(); ++bit) {
          const double value = values[byte * kBits + bit];
          if (!std::isnan(value)) {
            sum += (signs >> bit & 1) != 0 ? -value : value;
          }
        }
        tables_[byte][signs] = sum;
      }
    }
  }
  double operator()(std::uint64_t pattern) const {
    double sum = 0;
    for (const auto& table : tables_) {
      sum += table[pattern % kPatterns];
      pattern /= kPatterns;
    }
    return sum;
  }

 private:
  static constexpr std::size_t kBits = 8;
  static constexpr std::size_t kPatterns = 1U << kBits;
  std::vector<std::array<double, kPatterns>> tables_;
};

// t of the values under every pattern, signed.
std::vector<double> flipped_ts(std::span<const double> values, std::span<const std::uint64_t> patterns) {
  double squares = 0;
  double count = 0;
  for (const double value : values) {
    if (std::isnan(value)) {
      continue;
    }
    squares += value * value;
    ++count;
  }
  const FlippedSums sums(values);
  std::vector<double> ts(patterns.size());
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    ts[i] = t_of(sums(patterns[i]), squares, count);
  }
  return ts;
}

// Returns the smallest t that at most the share `level` of patterns reaches; infinity where there is none.
double critical_of(std::vector<double> largest, double level) {
  const auto allowed = static_cast<std::size_t>(level * static_cast<double>(largest.size()));
  if (allowed == 0) {
    return std::numeric_limits<double>::infinity();
  }
  const std::size_t kept = std::min(allowed + 1, largest.size());
  std::partial_sort(largest.begin(), largest.begin() + static_cast<std::ptrdiff_t>(kept), largest.end(),
                    std::greater<>());
  double critical = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < allowed; ++i) {
    if (i + 1 == largest.size() || largest[i + 1] < largest[i]) {
      critical = largest[i];
    }
  }
  return critical;
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
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      patterns[i] = i;
    }
    return patterns;
  }
  const std::uint64_t used = launches == kMostLaunches ? ~std::uint64_t{0} : (std::uint64_t{1} << launches) - 1;
  std::uint64_t state = launches;
  for (std::size_t i = 1; i < patterns.size(); ++i) {
    patterns[i] = next_draw(state) & used & ~std::uint64_t{1};
  }
  return patterns;
}

double flipped_t(std::span<const double> values, std::uint64_t pattern) {
  return std::abs(flipped_ts(values, std::span(&pattern, 1)).front());
}

FamilyTest test_family(const std::vector<std::vector<double>>& contrasts, Sides sides, double level) {
  FamilyTest test;
  if (contrasts.empty()) {
    return test;
  }
  const std::size_t launches = contrasts.front().size();
  const std::vector<std::uint64_t> patterns = sign_patterns(launches);
  const bool complements = sides == Sides::upper && launches > kEnumeratedLaunches;
  std::vector<double> seen;
  std::vector<double> largest(patterns.size() * (complements ? 2 : 1), -std::numeric_limits<double>::infinity());
  const double counted = static_cast<double>(largest.size());
  const auto share_from = [&](const std::vector<double>& ts, double least) {
    return decision_digits(static_cast<double>(std::ranges::count_if(ts, [&](double t) { return t >= least; })) /
                           counted);
  };
  for (const std::vector<double>& contrast : contrasts) {
    if (contrast.size() != launches) {
      throw std::invalid_argument(fmt::format("A family has one launch per place: {} in one contrast, {} in another.",
                                              launches, contrast.size()));
    }
    std::vector<double> ts = flipped_ts(contrast, patterns);
    if (sides == Sides::two) {
      for (double& t : ts) {
        t = std::abs(t);
      }
    }
    for (std::size_t i = 0; complements && i < patterns.size(); ++i) {
      ts.push_back(-ts[i]);
    }
    seen.push_back(ts.front());
    test.p.push_back(share_from(ts, seen.back()));
    for (std::size_t i = 0; i < ts.size(); ++i) {
      largest[i] = std::max(largest[i], ts[i]);
    }
  }
  for (const double t : seen) {
    test.p_adjusted.push_back(share_from(largest, t));
  }
  test.critical_t = critical_of(std::move(largest), level);
  return test;
}

}  // namespace decodelab
