// The scan of logits and the search for the largest on the CPU's device, against double precision and a sort.
#include "engine/kernels/elementwise/scan_logits.cuh"

#include <algorithm>
#include <limits>

#include "tests/cuda_on_cpu/kernel_test.h"

namespace decodelab::cuda_on_cpu {
namespace {

using ScanLogits = KernelTest;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kCapacity = 40;

/// Rows of the kinds that are hard: random, all equal, with ties, mostly impossible.
template <typename Element>
std::vector<Element> hard_rows(std::int64_t rows, std::int64_t width) {
  Numbers numbers;
  std::vector<Element> logits = numbers.next<Element>(rows * width, 8.0f);
  for (std::int64_t at = 0; at < width; ++at) {
    const auto place = static_cast<std::size_t>(at);
    const auto row = static_cast<std::size_t>(width);
    logits[row + place] = element_of<Element>(1.5f);
    logits[2 * row + place] = element_of<Element>(static_cast<float>(at % 29));
    logits[3 * row + place] = element_of<Element>(at % 113 == 5 ? 2.0f : -kInfinity);
  }
  return logits;
}

template <typename Element>
void expect_scan(std::int64_t width, const std::vector<std::int64_t>& tops) {
  SCOPED_TRACE("rows of " + std::to_string(width));
  const auto rows = static_cast<std::int64_t>(tops.size());
  const Memory<Element> logits("logits", hard_rows<Element>(rows, width));
  const Memory<std::int64_t> ids("ids", std::vector<std::int64_t>(tops.size(), width / 2));
  const Memory<std::int64_t> wanted("tops", tops);
  const Memory<float> maxima("group_maxima", rows * scan_groups(width));
  const Memory<DevicePart> parts("parts", rows * scan_parts(width));
  const Memory<std::int32_t> found("found", rows);
  const Memory<float> top_logits("top_logits", rows * kCapacity);
  const Memory<std::int32_t> top_ids("top_ids", rows * kCapacity);
  launch_scan_logits({.element = OfElement<Element>::kType,
                      .rows = rows,
                      .width = width,
                      .stride = width,
                      .capacity = kCapacity,
                      .logits = logits.data(),
                      .ids = ids.data(),
                      .tops = wanted.data(),
                      .group_maxima = maxima.data(),
                      .parts = parts.data(),
                      .found = found.data(),
                      .top_logits = top_logits.data(),
                      .top_ids = top_ids.data()},
                     true, nullptr);
  for (std::int64_t row = 0; row < rows; ++row) {
    SCOPED_TRACE("row " + std::to_string(row));
    std::vector<double> values;
    for (std::int64_t at = 0; at < width; ++at) {
      values.push_back(logits.number(row * width + at));
    }
    const double own = values[static_cast<std::size_t>(width / 2)];
    double sum = 0;
    double expected = 0;
    std::int64_t greater = 0;
    const double largest = *std::ranges::max_element(values);
    for (std::int64_t part = 0; part < scan_parts(width); ++part) {
      const DevicePart& of = parts[row * scan_parts(width) + part];
      sum += static_cast<double>(of.sum) * std::exp(static_cast<double>(of.largest) - largest);
      greater += of.greater;
      EXPECT_EQ(of.nans, 0);
    }
    for (const double value : values) {
      expected += std::exp(value - largest);
    }
    EXPECT_NEAR(sum / expected, 1, 1e-5);
    EXPECT_EQ(greater, std::ranges::count_if(values, [&](double value) { return value > own; }));
    // The n largest are among those that were found.
    std::vector<double> sorted = values;
    std::ranges::sort(sorted, std::greater());
    const std::int64_t top = tops[static_cast<std::size_t>(row)];
    if (top == 0) {
      EXPECT_EQ(found[row], 0);
      continue;
    }
    const double last = sorted[static_cast<std::size_t>(std::min(top, width) - 1)];
    const std::int64_t least =
        std::ranges::count_if(values, [&](double value) { return value >= last && value > -kInfinity; });
    ASSERT_LE(found[row], kCapacity);
    EXPECT_GE(found[row], std::min(least, kCapacity));
    std::int64_t as_large = 0;
    std::int64_t highest_tie = -1;
    for (std::int64_t place = 0; place < found[row]; ++place) {
      const std::int64_t at = row * kCapacity + place;
      EXPECT_EQ(static_cast<double>(top_logits[at]), values[static_cast<std::size_t>(top_ids[at])]);
      as_large += static_cast<double>(top_logits[at]) >= last ? 1 : 0;
      highest_tie =
          static_cast<double>(top_logits[at]) == last ? std::max<std::int64_t>(highest_tie, top_ids[at]) : highest_tie;
    }
    EXPECT_EQ(as_large, std::min(least, kCapacity));
    // Of equal logits those of the lowest ids are there.
    const std::int64_t ties_before = std::ranges::count(values.begin(), values.begin() + highest_tie + 1, last);
    const std::int64_t larger = std::ranges::count_if(values, [&](double value) { return value > last; });
    EXPECT_EQ(ties_before, as_large - larger);
  }
}

TEST_F(ScanLogits, EqualTheReferenceForAwkwardWidthsAndTies) {
  in_every_type_and_order([]<typename Element>() {
    expect_scan<Element>(31, {5, 1, 3, 2});
    expect_scan<Element>(64, {1, 64, 2, 0});
    expect_scan<Element>(700, {3, 2, 30, 1});  // Larger ones, and more that tie than there is room for.
    expect_scan<Element>(2049, {20, 5, 7, 40});
    expect_scan<Element>(5000, {0, 1, 12, 3});
  });
  expect_all_launched("scan_part");
  expect_all_launched("find_largest");
}

TEST_F(ScanLogits, CountNumbersThatAreNone) {
  std::vector<float> values(300, 1.0f);
  values[70] = std::numeric_limits<float>::quiet_NaN();
  const Memory<float> logits("logits", values);
  const Memory<std::int64_t> ids("ids", std::vector<std::int64_t>{0});
  const Memory<std::int64_t> tops("tops", std::vector<std::int64_t>{0});
  const Memory<float> maxima("group_maxima", scan_groups(300));
  const Memory<DevicePart> parts("parts", 1);
  launch_scan_logits({.element = DeviceElement::float32,
                      .rows = 1,
                      .width = 300,
                      .stride = 300,
                      .capacity = 0,
                      .logits = logits.data(),
                      .ids = ids.data(),
                      .tops = tops.data(),
                      .group_maxima = maxima.data(),
                      .parts = parts.data()},
                     false, nullptr);
  EXPECT_EQ(parts[0].nans, 1);
}

TEST_F(ScanLogits, LaunchNothingWithoutRows) {
  const std::uint32_t before = machine().blocks_run();
  launch_scan_logits({.element = DeviceElement::float32, .rows = 0, .width = 64}, true, nullptr);
  EXPECT_EQ(machine().blocks_run(), before);
}

}  // namespace
}  // namespace decodelab::cuda_on_cpu
