// Turns fp32 values into the element types of a checkpoint.
#include "engine/checkpoint/element_conversion.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace decodelab {
namespace {

static_assert(std::endian::native == std::endian::little,
              "safetensors are little-endian, and elements are copied as they lie in memory");

constexpr std::uint32_t kSignBit = 0x80000000u;
constexpr std::uint32_t kInfinity = 0x7f800000u;

[[gnu::always_inline]] inline std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet_nan = (bits >> 16) | 0x40u;
  return static_cast<std::uint16_t>((bits & ~kSignBit) > kInfinity ? quiet_nan : rounded);
}

std::uint16_t to_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & ~kSignBit;
  std::uint32_t result;
  if (magnitude > kInfinity) {
    result = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x47800000u) {  // 65536; from 65520 on the rounding below carries into infinity by itself.
    result = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // 2^-14, the smallest normal number: rebias the exponent, round 13 bits off.
    const std::uint32_t rebiased = magnitude - (112u << 23);
    result = (rebiased + 0xfffu + ((rebiased >> 13) & 1u)) >> 13;
  } else {  // One unit of 0.5f is 2^-24, that of a denormal fp16: the addition rounds.
    result = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<std::uint32_t>(0.5f);
  }
  return static_cast<std::uint16_t>(result | ((bits & kSignBit) >> 16));
}

template <typename Convert>
[[gnu::always_inline]] inline void convert_each(std::span<const float> values, std::byte* out, Convert convert) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t element = convert(values[i]);
    std::memcpy(out + 2 * i, &element, sizeof(element));
  }
}

void convert_to_bfloat16(std::span<const float> values, std::byte* out) {
  convert_each(values, out, [](float value) { return to_bfloat16(value); });
}

#if defined(__x86_64__)

__attribute__((target("avx,f16c"))) std::size_t convert_vectors_to_float16(std::span<const float> values,
                                                                           std::byte* out) {
  std::size_t i = 0;
  for (; i + 8 <= values.size(); i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(values.data() + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 2 * i), halves);
  }
  return i;
}

bool has_f16c() {
  static const bool supported = __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c");
  return supported;
}

#else

std::size_t convert_vectors_to_float16(std::span<const float>, std::byte*) { return 0; }
bool has_f16c() { return false; }

#endif

}  // namespace

void convert_elements(std::span<const float> values, ElementType type, std::span<std::byte> out) {
  if (out.size() != values.size() * element_bytes(type)) {
    throw std::invalid_argument(fmt::format("convert_elements: expected {} bytes for {} elements, got {}",
                                            values.size() * element_bytes(type), values.size(), out.size()));
  }
  if (values.empty()) {
    return;
  }
  switch (type) {
    case ElementType::float32: std::memcpy(out.data(), values.data(), out.size()); return;
    case ElementType::bfloat16: convert_to_bfloat16(values, out.data()); return;
    case ElementType::float16: break;
  }
  const std::size_t done = has_f16c() ? convert_vectors_to_float16(values, out.data()) : 0;
  convert_each(values.subspan(done), out.data() + 2 * done, to_float16);
}

}  // namespace decodelab
