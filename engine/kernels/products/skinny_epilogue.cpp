// The epilogue of a panel.
#include "engine/kernels/products/skinny_epilogue.h"

#include "engine/kernels/products/skinny_kernels.h"

namespace decodelab::skinny {
namespace {

template <typename Element, std::int64_t N>
struct Finish {
  [[gnu::always_inline]] static void run(const SkinnyProduct* product, std::int64_t panel, const float* sums) {
    for (std::int64_t row = 0; row < product->rows; ++row) {
      finish_row<Element, N>(*product, sums + row * kPanelOutputs, row, panel * kPanelOutputs, kPanelOutputs);
    }
  }
};

}  // namespace

void finish_panel(const SkinnyProduct& product, std::int64_t panel, const float* sums, CpuIsa isa) {
  if (product.weights.dtype() == ElementType::bfloat16) {
    simd::run_best_wide<Finish, simd::Bfloat16>(isa, &product, panel, sums);
  } else {
    simd::run_best_wide<Finish, float>(isa, &product, panel, sums);
  }
}

}  // namespace decodelab::skinny
