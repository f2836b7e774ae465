// A scan of logits against a stable full sort and a log-sum-exp in fp64, over rows that are hard to order.
#include "engine/kernels/elementwise/scan_logits.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/tensor.h"
#include "tests/engine/kernels/every_isa.h"

namespace decodelab {
namespace {

using testing::every_isa;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Rows by name, [V] in fp32.
std::vector<std::pair<std::string, at::Tensor>> hard_rows(std::int64_t width) {
  at::manual_seed(7);
  const at::Tensor random = at::randn({width}) * 6;
  at::Tensor mostly_masked = at::full({width}, -kInfinity);
  for (std::int64_t id = 2; id < width; id += 101) {
    mostly_masked[id] = static_cast<float>(id % 7);
  }
  at::Tensor signed_zeros = at::zeros({width});
  signed_zeros.slice(0, 0, width, 2).mul_(-1.0);
  return {{"random", random},
          {"all equal", at::full({width}, 1.5f)},
          {"ascending", at::arange(width, at::kFloat) / 8},
          {"descending", at::arange(width, at::kFloat).flip(0) / 8},
          {"ties in threes", at::arange(width, at::kFloat).div(3, "floor")},
          {"both zeros", signed_zeros},
          {"mostly masked", mostly_masked},
          {"far below zero", random - 3e4},
          {"one peak", at::full({width}, -40.0f).index_fill(0, at::tensor({width - 1}), 40)}};
}

/// The tokens that can come, by a stable sort: of equal logits the lowest id first.
std::vector<RankedLogit> sorted(const std::vector<float>& logits) {
  std::vector<RankedLogit> all;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (logits[id] > -kInfinity) {
      all.push_back({.logit = logits[id], .id = static_cast<std::int64_t>(id)});
    }
  }
  std::ranges::stable_sort(all, std::greater(), &RankedLogit::logit);
  return all;
}

double log_prob_of(const std::vector<float>& logits, std::size_t token) {
  const double largest = *std::ranges::max_element(logits);
  const double sum = std::accumulate(logits.begin(), logits.end(), 0.0, [&](double so_far, float logit) {
    return so_far + std::exp(static_cast<double>(logit) - largest);
  });
  return static_cast<double>(logits[token]) - largest - std::log(sum);
}

std::vector<float> numbers_of(const at::Tensor& row) {
  const at::Tensor values = row.to(at::kFloat).contiguous();
  return {values.const_data_ptr<float>(), values.const_data_ptr<float>() + values.numel()};
}

/// Scans a row in two parts, as two threads do.
LogitScan scan_in_parts(const at::Tensor& row, ElementType dtype, float asked_about, std::vector<float>& maxima,
                        CpuIsa isa) {
  const std::int64_t width = row.numel();
  const std::int64_t middle = std::min(scan_blocks(width) / 2 * kScanBlock, width);
  maxima.assign(static_cast<std::size_t>(scan_blocks(width)), 0);
  const void* logits = row.const_data_ptr();
  return merged(scan_logits(logits, dtype, 0, middle, asked_about, maxima.data(), isa),
                scan_logits(logits, dtype, middle, width, asked_about, maxima.data(), isa));
}

struct ScannedType {
  ElementType type;
  at::ScalarType scalar;
};
const std::vector<ScannedType> kScannedTypes{
    {ElementType::float32, at::kFloat}, {ElementType::float16, at::kHalf}, {ElementType::bfloat16, at::kBFloat16}};

/// Calls `check` with every hard row in every type, width and set of instructions.
template <typename Check>
void over_hard_rows(Check&& check) {
  for (const ScannedType& kind : kScannedTypes) {
    for (const std::int64_t width : {1, 5, 63, 64, 65, 1000, 4099}) {
      for (const auto& [name, values] : hard_rows(width)) {
        const at::Tensor row = values.to(kind.scalar);
        if (numbers_of(row) == std::vector<float>(static_cast<std::size_t>(width), -kInfinity)) {
          continue;  // fp16 has no such numbers
        }
        for (const CpuIsa isa : every_isa()) {
          SCOPED_TRACE(name + " " + std::to_string(width) + " " + c10::toString(kind.scalar) + " " + to_string(isa));
          check(row, kind.type, isa);
        }
      }
    }
  }
}

TEST(ScanLogits, EqualsALogSumAndACountInDouble) {
  over_hard_rows([](const at::Tensor& row, ElementType dtype, CpuIsa isa) {
    const std::vector<float> logits = numbers_of(row);
    for (const std::size_t token : {std::size_t{0}, logits.size() / 2, logits.size() - 1}) {
      if (logits[token] == -kInfinity) {
        continue;  // Both log-probabilities are -infinity, which have no difference.
      }
      std::vector<float> maxima;
      const LogitScan scan = scan_in_parts(row, dtype, logits[token], maxima, isa);
      EXPECT_TRUE(scan.is_distribution());
      EXPECT_EQ(scan.greater, std::ranges::count_if(logits, [&](float logit) { return logit > logits[token]; }));
      const double expected = log_prob_of(logits, token);
      EXPECT_NEAR(scan.log_prob(logits[token]), expected, 1e-6 * std::max(1.0, std::abs(expected)));
      EXPECT_EQ(logit_at(row.const_data_ptr(), dtype, static_cast<std::int64_t>(token)), logits[token]);
    }
  });
}

TEST(ScanLogits, TheLargestAreThoseOfAStableSortWithTheirTiesKeptOrCut) {
  over_hard_rows([](const at::Tensor& row, ElementType dtype, CpuIsa isa) {
    const std::vector<float> logits = numbers_of(row);
    const std::vector<RankedLogit> all = sorted(logits);
    std::vector<float> maxima;
    scan_in_parts(row, dtype, logits[0], maxima, isa);
    for (const std::int64_t n :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{5}, std::int64_t{64}, row.numel(), row.numel() + 3}) {
      const auto asked = static_cast<std::size_t>(std::min<std::int64_t>(n, std::ssize(all)));
      std::size_t with_ties = asked;
      while (asked > 0 && with_ties < all.size() && all[with_ties].logit == all[asked - 1].logit) {
        ++with_ties;
      }
      const std::size_t kept = std::min(with_ties, static_cast<std::size_t>(4 * n));
      for (const Ties ties : {Ties::keep, Ties::cut}) {
        const LargestLogits got = largest_logits(row.const_data_ptr(), dtype, row.numel(), maxima, n, ties, isa);
        const std::size_t count = ties == Ties::keep ? kept : asked;
        EXPECT_EQ(got.logits, std::vector<RankedLogit>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)))
            << n;
        EXPECT_EQ(got.tied, with_ties > asked) << n;
        EXPECT_EQ(got.truncated, ties == Ties::keep && kept < with_ties) << n;
      }
    }
  });
}

TEST(ScanLogits, ANumberThatIsNoneIsNoticedWhereverItStands) {
  for (const ScannedType& kind : kScannedTypes) {
    for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), kInfinity}) {
      for (const std::int64_t at : {0, 17, 63, 64, 199}) {
        for (const CpuIsa isa : every_isa()) {
          at::Tensor row = at::zeros({200}).to(kind.scalar);
          std::vector<float> maxima;
          EXPECT_TRUE(scan_in_parts(row, kind.type, 0, maxima, isa).is_distribution());
          row[at] = wrong;
          EXPECT_FALSE(scan_in_parts(row, kind.type, 0, maxima, isa).is_distribution()) << to_string(isa) << " " << at;
        }
      }
    }
  }
}

TEST(ScanLogits, ARowOfTokensThatCannotComeHasNoLargest) {
  const at::Tensor row = at::full({130}, -kInfinity);
  std::vector<float> maxima;
  for (const CpuIsa isa : every_isa()) {
    const LogitScan scan = scan_in_parts(row, ElementType::float32, -kInfinity, maxima, isa);
    EXPECT_FALSE(scan.is_distribution());
    EXPECT_TRUE(
        largest_logits(row.const_data_ptr(), ElementType::float32, 130, maxima, 5, Ties::keep, isa).logits.empty());
  }
}

}  // namespace
}  // namespace decodelab
