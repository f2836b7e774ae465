// The epilogue of a product on tiles, interleaved with the products of the next strip.
#pragma once

#include "engine/kernels/kernel_isa.h"
#include "engine/kernels/products/amx_tiles.h"
#include "engine/kernels/products/skinny_epilogue.h"

#if defined(__x86_64__)

namespace decodelab::amx {

/// Finishes the sums of some rows of a strip. Rows are finished one at a time between the products of the next strip,
/// which leave the vector units idle.
class Epilogue {
 public:
  Epilogue() = default;
  Epilogue(const SkinnyProduct& product, const float* sums, std::int64_t first_row, std::int64_t last_row,
           std::int64_t output)
      : output_of_(product.output()), sums_(sums), row_(first_row), end_(last_row), output_(output) {}

  [[gnu::always_inline]] inline void do_row() {
    if (row_ == end_) {
      return;
    }
    skinny::finish_row<simd::Bfloat16>(output_of_, sums_, row_, output_, kBlockOutputs);
    sums_ += kBlockOutputs;
    ++row_;
  }
  [[gnu::target(DECODELAB_AVX512)]] void do_all() {
    while (row_ < end_) {
      do_row();
    }
  }

 private:
  ProductOutput output_of_{};
  const float* sums_ = nullptr;
  std::int64_t row_ = 0;
  std::int64_t end_ = 0;
  std::int64_t output_ = 0;
};

}  // namespace decodelab::amx
#endif
