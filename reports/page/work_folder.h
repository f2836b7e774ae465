// A folder in which the files of a report are made, and from which they come into place when all of them are complete.
#pragma once

#include <filesystem>
#include <string>

namespace decodelab {

/// Lies beside the final files, so that moving them is a rename; removed with what is left in it. Every function throws
/// std::invalid_argument, naming `out_dir`, where that cannot be written to.
class WorkFolder {
 public:
  /// Makes `out_dir` where it is not there.
  explicit WorkFolder(const std::filesystem::path& out_dir);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  std::filesystem::path figures() const { return path_ / "figures"; }
  void write(const std::string& name, const std::string& content) const;
  /// Forgets the figures whose names end like this.
  void drop(const std::string& suffix) const;
  /// Moves everything to where it belongs, over older files of the same names.
  void publish() const;

 private:
  std::filesystem::path out_dir_;
  std::filesystem::path path_;
};

}  // namespace decodelab
