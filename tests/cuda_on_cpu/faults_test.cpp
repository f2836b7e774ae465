// Each fault is found, with the file and the line: kernels that have one, and launches that a GPU would refuse.
#include <algorithm>
#include <fstream>

#include "tests/cuda_on_cpu/faulty_kernels.cuh"
#include "tests/cuda_on_cpu/kernel_test.h"

namespace decodelab::cuda_on_cpu {
namespace {

constexpr const char* kFile = "tests/cuda_on_cpu/faulty_kernels.cu";
constexpr std::int64_t kCount = 64;
constexpr std::int64_t kUnwritten = 8;

/// Returns "file:line" of the line that ends in "FAULT <name>".
std::string marked_place(const std::string& name) {
  std::ifstream file(std::string(DECODELAB_SOURCE_DIR) + "/" + kFile);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.ends_with("FAULT " + name)) {
      return std::string(kFile) + ":" + std::to_string(number);
    }
  }
  return "no line is marked for " + name;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class Faults : public ::testing::TestWithParam<FaultyKernel> {
 protected:
  void TearDown() override {
    machine().take_faults();
    machine().set_order(0);
  }
};

TEST_P(Faults, AreFoundWithFileAndLineInEveryOrder) {
  const FaultyKernel& kernel = GetParam();
  for (const std::uint64_t order : {0, 1, 2, 3}) {
    machine().set_order(order);
    Memory<float> memory("memory", kCount);
    for (std::int64_t index = 0; index < kCount - kUnwritten; ++index) {
      memory.set(index, 1.0f);
    }
    kernel.launch(memory.data(), static_cast<int>(kCount));
    const std::vector<std::string> faults = machine().take_faults();
    ASSERT_FALSE(faults.empty()) << "order " << order;
    // Which thread comes first depends on the order; what the sentence says without one does not.
    const std::string& first = faults.front();
    EXPECT_TRUE(contains(first, marked_place(kernel.name))) << first << "\nexpected " << marked_place(kernel.name);
    EXPECT_TRUE(order != 0 || contains(first, kernel.says)) << first << "\nexpected " << kernel.says;
    EXPECT_TRUE(first.starts_with(std::string(kernel.name) + ": ")) << first;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Faults, ::testing::ValuesIn(faulty_kernels().begin(), faulty_kernels().end()),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace decodelab::cuda_on_cpu
