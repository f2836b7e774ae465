// Chooses codes for weights.
#include "engine/kernels/products/coded/weight_code.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "engine/kernels/half.h"

namespace decodelab {
namespace {

using Weights = std::array<float, kCodedGroup>;
using Numbers = std::array<double, kCodedGroup>;

/// Shares of the range of the weights that the codes are spread over.
constexpr std::array<double, 8> kShares{1.0, 0.96, 0.92, 0.88, 0.84, 0.8, 0.75, 0.7};

constexpr double kMostOfEight = 255;
constexpr double kMostOfFour = 15;

/// A scale and a least weight as fp16 holds them.
struct Line {
  std::uint16_t scale = 0;
  std::uint16_t least = 0;
};

Line rounded(double scale, double least) {
  return {.scale = to_half(static_cast<float>(scale)), .least = to_half(static_cast<float>(least))};
}

double squared_error(const Weights& weights, const Numbers& numbers, const Line& line) {
  double error = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double off = weights[i] - from_half(line.least) - from_half(line.scale) * numbers[i];
    error += off * off;
  }
  return error;
}

/// Returns the scale of least squared error through zero, or with a least weight beside it.
Line fitted(const Weights& weights, const Numbers& numbers, bool through_zero) {
  double sum = 0;
  double squares = 0;
  double of_weights = 0;
  double products = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    sum += numbers[i];
    squares += numbers[i] * numbers[i];
    of_weights += weights[i];
    products += weights[i] * numbers[i];
  }
  if (through_zero) {
    return rounded(squares > 0 ? products / squares : 0, 0);
  }
  const auto count = static_cast<double>(numbers.size());
  const double determinant = count * squares - sum * sum;
  const double scale = determinant > 0 ? (count * products - sum * of_weights) / determinant : 0;
  return rounded(scale, (of_weights - scale * sum) / count);
}

/// Returns the codes of weights about `begin` in steps of `step`, and as numbers, less the zero.
CodedGroup codes_of(const Weights& weights, WeightCode code, double begin, double step, Numbers& numbers) {
  CodedGroup group;
  const double zero = zero_of(code);
  const double most = code == WeightCode::q8 ? kMostOfEight : kMostOfFour;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double number = step == 0 ? 0 : (weights[i] - begin) / step;
    const double whole = std::clamp(std::nearbyint(number + zero), 0.0, most);
    group.codes[i] = static_cast<std::uint8_t>(whole);
    numbers[i] = whole - zero;
  }
  return group;
}

}  // namespace

const char* to_string(WeightCode code) {
  switch (code) {
    case WeightCode::q8: return "q8";
    case WeightCode::q8_row: return "q8 by rows";
    case WeightCode::q4: return "q4";
    case WeightCode::q4_least: return "q4 with a least weight";
    case WeightCode::q4_k: return "q4_k";
    case WeightCode::q6_k: return "q6_k";
  }
  return "";
}

CodedGroup coded(const float* weights, std::int64_t count, WeightCode code) {
  if (code == WeightCode::q4_k || code == WeightCode::q6_k || scales_rows(code)) {
    throw std::invalid_argument("a group alone is not rounded to codes whose groups share scales");
  }
  Weights all{};
  std::copy_n(weights, count, all.begin());
  const auto [low, high] = std::ranges::minmax(all);
  const bool through_zero = code != WeightCode::q4_least;
  const double middle = 0.5 * (static_cast<double>(low) + high);
  const double width = static_cast<double>(high) - low;
  // About zero the largest weight gets the last code of its side, which for 4 bits is -8: the scale may be negative.
  const double largest = std::abs(high) > std::abs(low) ? high : low;
  CodedGroup best;
  double least_error = std::numeric_limits<double>::infinity();
  for (const double share : kShares) {
    const double step = !through_zero            ? share * width / kMostOfFour
                        : code == WeightCode::q8 ? share * std::abs(largest) / 127
                                                 : -share * largest / 8;
    Numbers numbers{};
    CodedGroup group = codes_of(all, code, through_zero ? 0 : middle - 0.5 * share * width, step, numbers);
    const Line line = fitted(all, numbers, through_zero);
    const double error = squared_error(all, numbers, line);
    if (error < least_error) {
      least_error = error;
      group.scale = line.scale;
      group.least = line.least;
      best = group;
    }
    if (code == WeightCode::q8) {
      break;  // To cut weights off costs more than it saves where there are 256 codes.
    }
  }
  return best;
}

std::uint16_t row_scale(float largest) { return to_half(largest / 127); }

CodedGroup coded_by(std::uint16_t scale, const float* weights, std::int64_t count) {
  CodedGroup group{.scale = scale};
  const float step = from_half(scale);
  group.codes.fill(static_cast<std::uint8_t>(zero_of(WeightCode::q8_row)));
  for (std::int64_t i = 0; i < count && step != 0; ++i) {
    // fp16 may have rounded the scale down, so that the largest weight would be more than 127 steps off.
    const float whole = std::clamp(std::nearbyint(weights[i] / step), -127.0F, 127.0F);
    group.codes[static_cast<std::size_t>(i)] =
        static_cast<std::uint8_t>(static_cast<std::int32_t>(whole) + zero_of(WeightCode::q8_row));
  }
  return group;
}

float decoded(const CodedGroup& group, WeightCode code, std::int64_t index) {
  const auto number =
      static_cast<float>(static_cast<std::int32_t>(group.codes[static_cast<std::size_t>(index)]) - zero_of(code));
  const float scale = from_half(group.scale) * static_cast<float>(group.steps[index < kCodedGroup / 2 ? 0 : 1]);
  const float least = from_half(group.least) * static_cast<float>(group.least_step);
  return code == WeightCode::q4_k ? scale * number - least : scale * number + least;
}

}  // namespace decodelab
