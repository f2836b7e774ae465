// What typical-p keeps, found without a sort, against the warper that sorts.
#include "engine/kernels/elementwise/typical_cut.h"

#include <array>
#include <limits>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "engine/sampling/warpers.h"
#include "engine/tensor.h"

namespace decodelab {
namespace {

constexpr float kEndless = std::numeric_limits<float>::infinity();

/// Rows of many shapes: as a model's, all equal, few values, underflowing, masked, one token alone.
at::Tensor row_of(const std::string& kind, std::int64_t width, std::uint64_t seed) {
  at::manual_seed(seed);
  at::Tensor row = at::randn({width}) * 3;
  if (kind == "flat") {
    row.zero_();
  } else if (kind == "tied") {
    row.round_();
  } else if (kind == "peaked") {
    row *= 10;
  } else if (kind == "underflowing") {
    row[width / 2] = 300;
  } else if (kind == "masked") {
    row.narrow(0, 0, width / 2).fill_(-kEndless);
  } else if (kind == "nearly flat") {
    row *= 1e-4;
  }
  return row;
}

/// The largest distance that is kept; nothing where a sort has to tell.
std::optional<float> cut_of(const at::Tensor& logits, double p, float& entropy, at::Tensor& log_probs) {
  log_probs = at::log_softmax(logits, 0);
  const at::Tensor exponentials = log_probs.exp();
  const at::Tensor probs = at::softmax(logits, 0);
  const std::int64_t width = logits.size(0);
  entropy = entropy_of(log_probs.const_data_ptr<float>(), exponentials.const_data_ptr<float>(), width);
  return typical_cut(log_probs.const_data_ptr<float>(), probs.const_data_ptr<float>(), width, entropy,
                     static_cast<float>(p));
}

TEST(TypicalCut, KeepsWhatTheWarperKeepsThatSorts) {
  std::int64_t rows = 0;
  std::int64_t sorted = 0;
  for (const std::string kind : {"plain", "flat", "tied", "peaked", "underflowing", "masked", "nearly flat"}) {
    for (const std::int64_t width : {1, 2, 3, 64, 1000, 50304}) {
      for (const double p : {1e-8, 0.2, 0.5, 0.9, 0.999}) {
        for (std::uint64_t seed = 0; seed < (width > 1000 ? 2u : 8u); ++seed) {
          const at::Tensor logits = row_of(kind, width, seed);
          const at::Tensor kept = warp_row(logits, {.sample = true, .typical_p = p}) > -kEndless;
          float entropy = 0;
          at::Tensor log_probs;
          const auto farthest = cut_of(logits, p, entropy, log_probs);
          ++rows;
          if (!farthest) {
            ++sorted;
            continue;
          }
          for (std::int64_t id = 0; id < width; ++id) {
            // A token that cannot come is dropped either way.
            if (logits[id].item<float>() > -kEndless) {
              ASSERT_EQ(typical_distance(log_probs.const_data_ptr<float>()[id], entropy) <= *farthest,
                        kept.const_data_ptr<bool>()[id])
                  << kind << ", width " << width << ", p " << p << ", seed " << seed << ", id " << id;
            }
          }
        }
      }
    }
  }
  EXPECT_LT(sorted * 10, rows) << "of " << rows << " rows";
}

TEST(TypicalCut, LeavesRowsWithANanToTheWarperThatSorts) {
  at::Tensor logits = row_of("plain", 100, 1);
  logits[3] = std::numeric_limits<float>::quiet_NaN();
  float entropy = 0;
  at::Tensor log_probs;
  EXPECT_FALSE(cut_of(logits, 0.5, entropy, log_probs).has_value());
}

TEST(TypicalCut, LeavesRowsToASortWhereTheSumIsTooNearToTell) {
  // In fp32 a sum of 0.5 - 2^-26 lies halfway between 0.5 and the number below it.
  const std::array<float, 3> log_probs{-1, -2, -3};
  const std::array<float, 3> undecided{0.25f, 0.25f - 0x1p-26f, 0.5f};
  EXPECT_FALSE(typical_cut(log_probs.data(), undecided.data(), 3, 0, 0.5f).has_value());
  const std::array<float, 3> decided{0.25f, 0.25f, 0.5f};
  EXPECT_EQ(typical_cut(log_probs.data(), decided.data(), 3, 0, 0.5f), std::optional(2.0f));
}

}  // namespace
}  // namespace decodelab
