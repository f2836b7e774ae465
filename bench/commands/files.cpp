// Reads files and replaces them whole.
#include "bench/commands/files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace decodelab {
namespace {

bool written(const std::filesystem::path& path, const std::string& text) {
  std::ofstream stream(path, std::ios::binary);
  stream << text;
  stream.close();
  return static_cast<bool>(stream);
}

}  // namespace

std::string read_file(const std::string& flag, const std::string& path, const std::string& advice) {
  std::ifstream stream(path, std::ios::binary);
  // A folder can be opened and not read.
  if (!stream || std::filesystem::is_directory(path)) {
    throw std::invalid_argument(
        fmt::format("{} '{}' cannot be read{}{}", flag, path, advice.empty() ? "" : "; ", advice));
  }
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_file(const std::string& flag, const std::string& path, const std::string& text) {
  std::error_code error;
  const std::filesystem::path target = path;
  const bool special = std::filesystem::exists(target, error) && !std::filesystem::is_regular_file(target, error);
  // Another process may be writing the same file.
  const std::filesystem::path draft =
      special ? target : std::filesystem::path(fmt::format("{}.{}.new", path, getpid()));
  bool done = written(draft, text);
  if (!special) {
    if (done) {
      std::filesystem::rename(draft, target, error);
      done = !error;
    }
    if (!done) {
      std::filesystem::remove(draft, error);
    }
  }
  if (!done) {
    throw std::invalid_argument(
        fmt::format("{} '{}' cannot be written; give a file in a folder that exists and has room", flag, path));
  }
}

}  // namespace decodelab
