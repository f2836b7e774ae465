// Makes, fills and empties the folder.
#include "reports/page/work_folder.h"

#include <fstream>
#include <stdexcept>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace decodelab {
namespace {

std::invalid_argument unwritable(const std::filesystem::path& folder, const std::string& why) {
  return std::invalid_argument(fmt::format(
      "The report cannot be written into '{}': {}. Give --out a folder that may be written to.", folder.string(), why));
}

}  // namespace

WorkFolder::WorkFolder(const std::filesystem::path& out_dir)
    : out_dir_(out_dir), path_(out_dir / fmt::format(".report-{}.tmp", getpid())) {
  std::error_code error;
  std::filesystem::create_directories(out_dir_, error);
  if (error) {
    throw unwritable(out_dir_, error.message());
  }
  std::filesystem::remove_all(path_, error);
  std::filesystem::create_directories(path_ / "figures", error);
  if (error) {
    throw unwritable(out_dir_, error.message());
  }
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void WorkFolder::write(const std::string& name, const std::string& content) const {
  std::ofstream file(path_ / name, std::ios::binary);
  file << content;
  file.close();
  if (!file) {
    throw unwritable(out_dir_, fmt::format("writing {} failed, perhaps the disk is full", name));
  }
}

void WorkFolder::drop(const std::string& suffix) const {
  std::vector<std::filesystem::path> dropped;
  for (const auto& entry : std::filesystem::directory_iterator(figures())) {
    if (entry.path().string().ends_with(suffix)) {
      dropped.push_back(entry.path());
    }
  }
  for (const std::filesystem::path& path : dropped) {
    std::filesystem::remove(path);
  }
}

void WorkFolder::publish() const {
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
    if (!entry.is_regular_file()) {
      continue;
    }
    const std::filesystem::path target = out_dir_ / std::filesystem::relative(entry.path(), path_);
    std::filesystem::create_directories(target.parent_path(), error);
    std::filesystem::rename(entry.path(), target, error);
    if (error) {
      throw unwritable(out_dir_, error.message());
    }
  }
}

}  // namespace decodelab
