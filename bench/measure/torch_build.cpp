// Collects what the compiler and libtorch say about this build.
#include "bench/measure/torch_build.h"

#include <decodelab_commit.h>
#include <fmt/format.h>

#include "engine/runtime.h"

namespace decodelab {

BuildRecord this_build() {
#ifdef NDEBUG
  constexpr const char* kBuildType = "release";
#else
  constexpr const char* kBuildType = "debug";
#endif
#ifdef __clang__
  const std::string compiler = fmt::format("clang {}", __clang_version__);
#else
  const std::string compiler = fmt::format("g++ {}", __VERSION__);
#endif
  return {.commit = DECODELAB_COMMIT,
          .compiler = compiler,
          .build_type = kBuildType,
          .libtorch = libtorch_version(),
          .cuda = cuda_version()};
}

}  // namespace decodelab
