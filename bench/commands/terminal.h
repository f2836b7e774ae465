// What is written to stderr while a command works.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace decodelab {

/// One line on stderr that is rewritten in place; silent where stderr is no terminal.
class StatusLine {
 public:
  StatusLine();
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  /// Returns the columns that a line may fill.
  int columns() const;
  void show(const std::string& line);
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
};

/// Shows the share of bytes done, once a second, when the work takes longer than a second.
class ByteProgress {
 public:
  explicit ByteProgress(std::string label);
  void operator()(std::int64_t done_bytes, std::int64_t total_bytes);

 private:
  std::string label_;
  StatusLine line_;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point shown_;
};

}  // namespace decodelab
