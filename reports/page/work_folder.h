// A temporary folder in which the files of a report are written. They are moved into place when all of them are
// complete.
#pragma once

#include <filesystem>
#include <string>

namespace decodelab {

/// A temporary folder inside `out_dir`, so that moving a file into place is a rename. The destructor removes it with
/// everything left in it. Every function throws std::invalid_argument, naming `out_dir`, where that cannot be written
/// to.
class WorkFolder {
 public:
  /// Creates the folder, and `out_dir` where it does not exist.
  explicit WorkFolder(const std::filesystem::path& out_dir);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  std::filesystem::path figures() const { return path_ / "figures"; }
  void write(const std::string& name, const std::string& content) const;
  /// Deletes the figures whose file names end with `suffix`.
  void drop(const std::string& suffix) const;
  /// Moves every file into `out_dir`, where it replaces an older file of the same name.
  void publish() const;

 private:
  std::filesystem::path out_dir_;
  std::filesystem::path path_;
};

}  // namespace decodelab
