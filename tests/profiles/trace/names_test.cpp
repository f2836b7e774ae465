// Names are folded as people read them, and what only looks like a template is left alone.
#include "profiles/trace/names.h"

#include <gtest/gtest.h>

namespace decodelab {
namespace {

TEST(ShortName, FoldsTemplateArgumentsAndDropsTypesAndParameters) {
  EXPECT_EQ(
      short_name("void at::native::vectorized_elementwise_kernel<(int)4, at::native::AUnaryFunctor<float, float>, "
                 "std::array<char *, (unsigned long)2>>(int, T2, T3)"),
      "at::native::vectorized_elementwise_kernel<...>");
  EXPECT_EQ(
      short_name("void (anonymous namespace)::softmax_warp_forward<float, float, (int)8, false>(T2 *, const T1 *)"),
      "softmax_warp_forward<...>");
  EXPECT_EQ(short_name("void <unnamed>::softmax_warp_forward<float>(T2 *)"), "softmax_warp_forward<...>");
  EXPECT_EQ(short_name("gemm(float*, int)"), "gemm");
}

TEST(ShortName, KeepsNamesWithoutAny) {
  for (const char* name : {"", "sm80_xmma_gemm_f32f32", "Memcpy HtoD (Pageable -> Device)", "forward", "a < b",
                           "layer 3", "operator<", "f<unclosed"}) {
    EXPECT_EQ(short_name(name), name);
  }
}

TEST(ShortName, OfARangeItsKindIsWithoutWhatStandsInBrackets) {
  EXPECT_EQ(range_kind("FSDP::pre_forward (encoder.block.3)"), "FSDP::pre_forward");
  EXPECT_EQ(range_kind("(x)"), "(x)");
  EXPECT_EQ(range_kind("layer 1"), "layer 1");
}

TEST(ShortName, DropsTheNumbersBehindRangesOfPyTorch) {
  EXPECT_EQ(short_name("aten::add, op_id = 314359"), "aten::add");
  EXPECT_EQ(short_name("aten::mm, seq = 12, op_id = 4"), "aten::mm");
}

}  // namespace
}  // namespace decodelab
