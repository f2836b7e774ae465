// The loop of an activation and its multiplication.
#include "engine/kernels/elementwise/gate_rows.h"

#include "engine/kernels/wide.h"

namespace decodelab {
namespace {

using simd::kLanes;

template <typename Element, std::int64_t N>
struct GateRows {
  [[gnu::always_inline]] static void run(const GatedRows* rows, std::int64_t first, std::int64_t last) {
    const std::int64_t width = rows->width;
    const Activation activation = rows->activation;
    for (std::int64_t row = first; row < last; ++row) {
      const auto* gate = static_cast<const Element*>(rows->up) + row * 2 * width;
      const Element* up = gate + width;
      auto* out = static_cast<Element*>(rows->out) + row * width;
      for (std::int64_t at = 0; at < width; at += kLanes) {
        const std::int64_t rest = width - at;
        simd::store_wide(out + at,
                         activate(simd::load_wide<N>(gate + at, rest), activation) * simd::load_wide<N>(up + at, rest),
                         rest);
      }
    }
  }
};

}  // namespace

void gate_rows(const GatedRows& rows, std::int64_t first, std::int64_t last, CpuIsa isa) {
  simd::run_typed_wide<GateRows>(rows.dtype, isa, &rows, first, last);
}

}  // namespace decodelab
