// The epilogue of a block of sums.
#include "engine/kernels/products/skinny_epilogue.h"

namespace decodelab {
namespace {

template <typename Element, std::int64_t N>
struct Finish {
  [[gnu::always_inline]] static void run(const ProductOutput* output, const float* sums, std::int64_t rows,
                                         std::int64_t first, std::int64_t width) {
    for (std::int64_t row = 0; row < rows; ++row) {
      skinny::finish_row<Element, N>(*output, sums + row * width, row, first, width);
    }
  }
};

}  // namespace

void finish_sums(const ProductOutput& output, const float* sums, std::int64_t rows, std::int64_t first,
                 std::int64_t width, CpuIsa isa) {
  if (output.dtype == ElementType::bfloat16) {
    simd::run_best_wide<Finish, simd::Bfloat16>(isa, &output, sums, rows, first, width);
  } else {
    simd::run_best_wide<Finish, float>(isa, &output, sums, rows, first, width);
  }
}

}  // namespace decodelab
