// What this program was built from, and whether a device is there.
#include <fmt/format.h>

#include "bench/commands/commands.h"
#include "bench/measure/torch_build.h"
#include "engine/runtime.h"

namespace decodelab {

std::string version_text() {
  const BuildRecord build = this_build();
  return fmt::format("decodelab {} ({})\ncompiler  {}\nlibtorch  {}\nCUDA      {}", build.commit, build.build_type,
                     build.compiler, build.libtorch, build.cuda.empty() ? "none" : build.cuda);
}

std::string require_device(const std::string& name) {
  const DeviceCheck check = check_device(name);
  if (!check.well_named) {
    throw std::invalid_argument(check.message);
  }
  if (!check.present) {
    throw AbsentDevice(check.message);
  }
  return name == "cuda" ? "cuda:0" : name;
}

}  // namespace decodelab
