// Random tensors: the generator's numbers, on every device.
#include "engine/kernels/elementwise/random_fill.h"

#include <gtest/gtest.h>

#include "engine/checkpoint/synthetic.h"
#include "engine/runtime.h"
#include "engine/tensor.h"

namespace decodelab {
namespace {

TEST(RandomUniform, IsTheCounterBasedGenerator) {
  const at::Tensor values = random_uniform({7, 11}, 3, synthetic_stream("kv.0"), "cpu");
  std::vector<float> expected(77);
  fill_synthetic(expected, 3, "kv.0", 0, 0.0f, 1.0f);
  EXPECT_TRUE(at::equal(values.flatten(), at::tensor(expected)));
  EXPECT_FALSE(at::equal(values, random_uniform({7, 11}, 4, synthetic_stream("kv.0"), "cpu")));
  EXPECT_FALSE(at::equal(values, random_uniform({7, 11}, 3, synthetic_stream("kv.1"), "cpu")));
}

TEST(RandomUniform, HasTheSameBitsOnCuda) {
  if (present_devices().size() < 2) {
    GTEST_SKIP() << "no CUDA device is present";
  }
  for (const std::int64_t count : {1, 3, 4, 1023, 1 << 22}) {
    EXPECT_TRUE(at::equal(random_uniform({count}, 5, synthetic_stream("kv.2"), "cuda:0").cpu(),
                          random_uniform({count}, 5, synthetic_stream("kv.2"), "cpu")))
        << count;
  }
}

}  // namespace
}  // namespace decodelab
