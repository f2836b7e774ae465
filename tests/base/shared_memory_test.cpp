// Memory that processes share is what its descriptor says, and nothing is left of it.
#include "base/shared_memory.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace decodelab {
namespace {

constexpr std::size_t kBytes = 5000;
constexpr std::byte kWritten{7};

TEST(SharedMemory, IsEmptyAndSeenByAChild) {
  const SharedMemory memory(kBytes);
  ASSERT_EQ(memory.bytes(), kBytes);
  EXPECT_TRUE(std::all_of(memory.data(), memory.data() + kBytes, [](std::byte byte) { return byte == std::byte{}; }));
  const pid_t child = fork();
  if (child == 0) {
    memory.data()[kBytes - 1] = kWritten;
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(memory.data()[kBytes - 1], kWritten);
}

TEST(SharedMemory, IsOpenedByItsDescriptorAndOutlivesItsMaker) {
  auto made = std::make_unique<SharedMemory>(kBytes);
  const SharedMemory opened(made->descriptor(), kBytes, "memory of a test");
  made->data()[0] = kWritten;
  made.reset();
  EXPECT_EQ(opened.bytes(), kBytes);
  EXPECT_EQ(opened.data()[0], kWritten);
}

TEST(SharedMemory, IsRefusedByNameWhereItIsTooSmallOrNone) {
  const SharedMemory memory(kBytes);
  for (const int descriptor : {memory.descriptor(), -1}) {
    try {
      const SharedMemory opened(descriptor, kBytes + 1, "memory of a test");
      FAIL() << "opened descriptor " << descriptor;
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()), "descriptor " + std::to_string(descriptor) + " is no memory of a test");
    }
  }
}

}  // namespace
}  // namespace decodelab
