// The loop of sums.
#include "engine/kernels/elementwise/add_parts.h"

#include "engine/kernels/wide.h"

namespace decodelab {
namespace {

using simd::kLanes;

/// Returns the numbers, with one NaN for all: rounding leaves it one, and which of two NaNs a sum would be is up to the
/// compiler.
template <typename Vector>
[[gnu::always_inline]] inline Vector with_one_nan(const Vector& value) {
  using Words = typename simd::LanesLike<Vector>::Words;
  const Words bits = reinterpret_cast<Words>(value);
  return reinterpret_cast<Vector>((bits & 0x7fffffffU) > 0x7f800000U ? Words{} + 0x7fc00000U : bits);
}

template <typename Element, std::int64_t N>
struct AddParts {
  [[gnu::always_inline]] static void run(void* sums, const void* const* parts, std::int64_t ranks, std::int64_t count) {
    auto* const to = static_cast<Element*>(sums);
    for (std::int64_t at = 0; at < count; at += kLanes) {
      auto sum = simd::load_wide<N>(static_cast<const Element*>(parts[0]) + at, count - at);
      for (std::int64_t rank = 1; rank < ranks; ++rank) {
        sum += simd::load_wide<N>(static_cast<const Element*>(parts[rank]) + at, count - at);
      }
      sum = simd::each(sum, [](const auto& part) __attribute__((always_inline)) { return with_one_nan(part); });
      simd::store_wide(to + at, sum, count - at);
    }
  }
};

}  // namespace

void add_parts(void* sums, std::span<const void* const> parts, std::int64_t count, ElementType dtype, CpuIsa isa) {
  simd::run_typed_wide<AddParts>(dtype, isa, sums, parts.data(), std::ssize(parts), count);
}

}  // namespace decodelab
