// Reads files and replaces them whole.
#include "base/files.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

namespace decodelab {
namespace {

bool written(const std::filesystem::path& path, const std::string& text) {
  std::ofstream stream(path, std::ios::binary);
  stream << text;
  stream.close();
  return static_cast<bool>(stream);
}

}  // namespace

std::optional<std::string> read_if_there(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  // A folder can be opened but not read.
  if (!stream || std::filesystem::is_directory(path)) {
    return std::nullopt;
  }
  return std::string{std::istreambuf_iterator<char>(stream), {}};
}

std::string read_file(const std::string& flag, const std::string& path, const std::string& advice) {
  std::optional<std::string> text = read_if_there(path);
  if (!text) {
    throw std::invalid_argument(
        fmt::format("{} '{}' cannot be read{}{}", flag, path, advice.empty() ? "" : "; ", advice));
  }
  return *std::move(text);
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

std::string read_text_file(const std::filesystem::path& file, std::uintmax_t limit_bytes) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) {
    throw std::invalid_argument(fmt::format("{}: no such file", file.string()));
  }
  if (!std::filesystem::is_regular_file(status)) {
    throw std::invalid_argument(fmt::format("{}: expected a file, got a directory or a device", file.string()));
  }
  const auto size = std::filesystem::file_size(file, error);
  if (error) {
    throw std::runtime_error(fmt::format("{}: cannot be read: {}", file.string(), error.message()));
  }
  if (size > limit_bytes) {
    throw std::invalid_argument(
        fmt::format("{}: expected at most {} bytes, got {}; is it the right file?", file.string(), limit_bytes, size));
  }
  std::ifstream stream(file, std::ios::binary);
  std::string text(static_cast<std::size_t>(size), '\0');
  stream.read(text.data(), static_cast<std::streamsize>(size));
  if (!stream || stream.gcount() != static_cast<std::streamsize>(size)) {
    throw std::runtime_error(fmt::format("{}: cannot be read; check its permissions", file.string()));
  }
  return text;
}

}  // namespace decodelab
