// Two passes over a row: its maximum, then the first index that has it.
#include "engine/kernels/elementwise/arg_max.h"

#include <limits>

#include "engine/kernels/wide.h"

namespace decodelab {
namespace {

template <typename Element, std::int64_t N>
struct Highest {
  using Floats = typename simd::Lanes<N>::Floats;
  using Ints = decltype(Floats{} < Floats{});

  [[gnu::always_inline]] static float as_float(const Element* at) { return simd::load_some(at, 1)[0]; }

  [[gnu::always_inline]] static std::int64_t of_row(const Element* row, std::int64_t width) {
    const std::int64_t whole = width / N * N;
    Floats most = Floats{} - std::numeric_limits<float>::infinity();
    Ints nan{};
    for (std::int64_t at = 0; at < whole; at += N) {
      const Floats value = simd::load<N>(row + at);
      nan |= value != value;
      most = simd::max(value, most);
    }
    float maximum = simd::largest(most);
    bool has_nan = false;
    for (std::int64_t lane = 0; lane < N; ++lane) {
      has_nan = has_nan || nan[lane] != 0;
    }
    for (std::int64_t at = whole; at < width; ++at) {
      const float value = as_float(row + at);
      has_nan = has_nan || value != value;
      maximum = value > maximum ? value : maximum;
    }
    for (std::int64_t at = 0; at < whole; at += N) {
      const Floats value = simd::load<N>(row + at);
      const Ints found = has_nan ? value != value : value == maximum;
      std::int32_t any = 0;
      for (std::int64_t lane = 0; lane < N; ++lane) {
        any |= found[lane];
      }
      if (any == 0) {
        continue;
      }
      for (std::int64_t lane = 0; lane < N; ++lane) {
        if (found[lane] != 0) {
          return at + lane;
        }
      }
    }
    for (std::int64_t at = whole; at < width; ++at) {
      const float value = as_float(row + at);
      if (has_nan ? value != value : value == maximum) {
        return at;
      }
    }
    return 0;
  }

  [[gnu::always_inline]] static void run(const void* numbers, std::int64_t width, std::int64_t stride,
                                         std::int64_t first, std::int64_t last, std::int64_t* indices) {
    const auto* rows = static_cast<const Element*>(numbers);
    for (std::int64_t row = first; row < last; ++row) {
      indices[row] = of_row(rows + row * stride, width);
    }
  }
};

}  // namespace

void arg_max_of_rows(const void* numbers, std::int64_t width, std::int64_t stride, ElementType dtype,
                     std::int64_t first, std::int64_t last, std::int64_t* indices, CpuIsa isa) {
  simd::run_typed_wide<Highest>(dtype, isa, numbers, width, stride, first, last, indices);
}

}  // namespace decodelab
