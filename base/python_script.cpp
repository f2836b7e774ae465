// Finds the scripts of tools/ and their Python; cmake/python.cmake says where the checkout has them.
#include "base/python_script.h"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

#ifndef DECODELAB_CHECKOUT_PYTHON
#define DECODELAB_CHECKOUT_PYTHON ""
#define DECODELAB_CHECKOUT_TOOLS ""
#endif

namespace decodelab {
namespace {

bool is_there(const std::filesystem::path& file) {
  std::error_code ignored;
  return !file.empty() && std::filesystem::exists(file, ignored);
}

std::filesystem::path script_path(const std::string& script) {
  std::error_code ignored;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::filesystem::path packaged = program.parent_path().parent_path() / "tools" / script;
  return is_there(packaged) ? packaged : std::filesystem::path(DECODELAB_CHECKOUT_TOOLS) / script;
}

}  // namespace

std::vector<std::string> python_command(const std::string& script) {
  const char* const chosen = std::getenv("DECODELAB_PYTHON");
  const std::string python = chosen != nullptr ? chosen : DECODELAB_CHECKOUT_PYTHON;
  if (python.empty()) {
    throw std::runtime_error("this build knows no Python");
  }
  const std::string path = script_path(script).string();
  for (const std::string& file : {python, path}) {
    if (!is_there(file)) {
      throw std::runtime_error(fmt::format("'{}' does not exist", file));
    }
  }
  return {python, path};
}

}  // namespace decodelab
