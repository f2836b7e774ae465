// No kernel of the tree is left out.
#include <filesystem>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace decodelab::cuda_on_cpu {
namespace {

TEST(EveryKernel, HasATestThatRunsIt) {
  std::istringstream kernels(DECODELAB_KERNELS);
  int count = 0;
  for (std::string path; std::getline(kernels, path, ',');) {
    const std::filesystem::path kernel(path);
    if (path.starts_with("tests/")) {
      continue;
    }
    const std::filesystem::path test =
        std::filesystem::path(DECODELAB_SOURCE_DIR) / "tests" / "cuda_on_cpu" / (kernel.stem().string() + "_test.cpp");
    EXPECT_TRUE(std::filesystem::exists(test)) << path << " needs " << test << " (tests/cuda_on_cpu/README.md)";
    ++count;
  }
  EXPECT_GE(count, 5);
}

}  // namespace
}  // namespace decodelab::cuda_on_cpu
