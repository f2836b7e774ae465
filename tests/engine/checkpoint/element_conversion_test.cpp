// Tests of fp32 to fp16 and bf16: every 16-bit value comes back, all between goes to the nearest, ties to even.
#include "engine/checkpoint/element_conversion.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

// A 16-bit format by its definition: sign, exponent and fraction, in double, which holds all its values exactly.
struct Format {
  ElementType type;
  int exponent_bits;
  int fraction_bits;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  std::uint16_t infinity() const { return static_cast<std::uint16_t>(((1 << exponent_bits) - 1) << fraction_bits); }
  bool is_nan(std::uint16_t code) const { return (code & 0x7fff) > infinity(); }
  // The value; infinity counts as the number that would come after the largest, which is what rounding compares with.
  double value(std::uint16_t code) const {
    const int exponent = (code & 0x7fff) >> fraction_bits;
    const int fraction = code & ((1 << fraction_bits) - 1);
    const double magnitude = exponent == 0
                                 ? std::ldexp(fraction, 1 - bias() - fraction_bits)
                                 : std::ldexp((1 << fraction_bits) + fraction, exponent - bias() - fraction_bits);
    return (code & 0x8000) != 0 ? -magnitude : magnitude;
  }
};

constexpr Format kFormats[] = {{ElementType::float16, 5, 10}, {ElementType::bfloat16, 8, 7}};

std::vector<std::uint16_t> convert(const std::vector<float>& values, ElementType type) {
  // One byte off, so that alignment is not taken for granted.
  std::vector<std::byte> bytes(2 * values.size() + 1);
  convert_elements(values, type, std::span(bytes).subspan(1));
  std::vector<std::uint16_t> codes(values.size());
  if (!codes.empty()) {
    std::memcpy(codes.data(), bytes.data() + 1, 2 * codes.size());
  }
  return codes;
}

TEST(ElementConversion, GivesEverySixteenBitValueBack) {
  for (const Format& format : kFormats) {
    std::vector<float> values;
    std::vector<std::uint16_t> expected;
    for (std::uint32_t code = 0; code < 65536; ++code) {
      const auto narrow = static_cast<std::uint16_t>(code);
      const bool infinite = (narrow & 0x7fff) == format.infinity();
      if (!format.is_nan(narrow)) {
        const float infinity =
            (narrow & 0x8000) != 0 ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
        values.push_back(infinite ? infinity : static_cast<float>(format.value(narrow)));
        expected.push_back(narrow);
      }
    }
    EXPECT_EQ(convert(values, format.type), expected);
  }
}

TEST(ElementConversion, RoundsBetweenAllNeighboursToTheNearestAndTiesToEven) {
  for (const Format& format : kFormats) {
    std::vector<float> values;
    std::vector<std::uint16_t> expected;
    for (std::uint16_t code = 0; code < format.infinity(); ++code) {
      const auto above = static_cast<std::uint16_t>(code + 1);
      const float middle =
          static_cast<float>((format.value(code) + format.value(above)) / 2);  // Exact: fp32 has one bit more.
      for (const std::uint16_t sign : {std::uint16_t{0}, std::uint16_t{0x8000}}) {
        const float direction = sign == 0 ? 1.0f : -1.0f;
        values.push_back(direction * std::nextafter(middle, 0.0f));
        expected.push_back(static_cast<std::uint16_t>(code | sign));
        values.push_back(direction * middle);
        expected.push_back(static_cast<std::uint16_t>(((code & 1) == 0 ? code : above) | sign));
        values.push_back(direction * std::nextafter(middle, std::numeric_limits<float>::infinity()));
        expected.push_back(static_cast<std::uint16_t>(above | sign));
      }
    }
    const auto codes = convert(values, format.type);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      ASSERT_EQ(codes[i], expected[i]) << values[i];
    }
  }
}

TEST(ElementConversion, KeepsNansAndTheirSigns) {
  for (const Format& format : kFormats) {
    for (const std::uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu}) {
      // Nine copies: eight go through the vector code and one through the plain rule.
      const auto codes = convert(std::vector<float>(9, std::bit_cast<float>(bits)), format.type);
      for (const std::uint16_t code : codes) {
        EXPECT_TRUE(format.is_nan(code)) << std::hex << bits << ' ' << code;
        EXPECT_EQ(code >> 15, bits >> 31);
        EXPECT_EQ(code, codes.back());
      }
    }
  }
}

TEST(ElementConversion, AgreesForEveryLengthWithOneAtATime) {
  std::vector<float> values;
  for (int i = 0; i < 40; ++i) {
    values.push_back(std::ldexp(1.0f + 0.013f * static_cast<float>(i), i - 30) * (i % 2 == 0 ? 1.0f : -1.0f));
  }
  for (const Format& format : kFormats) {
    std::vector<std::uint16_t> single;
    for (const float value : values) {
      single.push_back(convert({value}, format.type).front());
    }
    for (std::size_t size = 0; size <= values.size(); ++size) {
      const auto codes =
          convert(std::vector<float>(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(size)), format.type);
      EXPECT_TRUE(std::equal(codes.begin(), codes.end(), single.begin()));
    }
  }
}

TEST(ElementConversion, CopiesFp32) {
  const std::vector<float> values{1.5f, -0.0f, 3e-42f};
  std::vector<std::byte> bytes(12);
  convert_elements(values, ElementType::float32, bytes);
  EXPECT_EQ(std::memcmp(bytes.data(), values.data(), 12), 0);
}

TEST(ElementConversion, RefusesAnOutputOfAnotherSize) {
  const std::vector<float> values(3);
  std::vector<std::byte> bytes(7);
  EXPECT_THROW(convert_elements(values, ElementType::float16, bytes), std::invalid_argument);
}

}  // namespace
}  // namespace decodelab
