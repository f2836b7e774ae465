// Threads run where they are put.
#include "engine/runtime.h"

#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "engine/kernels/cuda_module.h"
#include "engine/tensor.h"

namespace decodelab {
namespace {

/// The cores that the calling thread may use.
std::set<std::int64_t> cores_of_this_thread() {
  cpu_set_t set;
  std::set<std::int64_t> cores;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) {
        cores.insert(static_cast<std::int64_t>(core));
      }
    }
  }
  return cores;
}

TEST(Runtime, PutsEachThreadOnItsPlace) {
  const std::set<std::int64_t> usable = cores_of_this_thread();
  const std::int64_t before = threads();
  // From a thread of its own, which has threads of its own: those of the other tests stay where they are.
  std::thread([&] {
    const std::vector<std::int64_t> places(usable.begin(), usable.end());
    set_threads(std::ssize(places));
    place_threads(places);
    std::mutex mutex;
    std::set<std::set<std::int64_t>> seen;
    at::parallel_for(0, std::ssize(places), 1, [&](std::int64_t, std::int64_t) {
      const std::lock_guard lock(mutex);
      seen.insert(cores_of_this_thread());
    });
    std::set<std::set<std::int64_t>> expected;
    for (const std::int64_t core : places) {
      expected.insert({core});
    }
    EXPECT_EQ(seen, expected);
    EXPECT_THROW(place_threads(std::vector<std::int64_t>(places.size() + 1)), std::invalid_argument);
  }).join();
  set_threads(before);
}

TEST(Runtime, LeavesThreadsToTheSystemWithoutPlaces) {
  const auto before = cores_of_this_thread();
  place_threads({});
  EXPECT_EQ(cores_of_this_thread(), before);
}

TEST(Runtime, LoadsLibtorchsCudaPartWhereItIsWanted) {
#ifdef DECODELAB_HAS_CUDA
  load_cuda_module();
  EXPECT_TRUE(cuda_module_loaded());
  EXPECT_NE(cuda_module_function("decodelab_new_cuda_graph_recorder"), nullptr);
  EXPECT_THROW(cuda_module_function("decodelab_no_such_function"), std::runtime_error);
  // What libtorch says of itself it looks up once, perhaps in a test before this one.
  EXPECT_NE(dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD), nullptr) << "libtorch's own part came with it";
#else
  EXPECT_THROW(load_cuda_module(), std::runtime_error);
  EXPECT_FALSE(cuda_module_loaded());
#endif
}

}  // namespace
}  // namespace decodelab
