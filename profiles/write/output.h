// Where the bytes of a written trace go: a file that appears whole or not at all, and gzip on the way to it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace decodelab {

/// Takes the bytes of a file in order.
using ByteSink = std::function<void(std::string_view)>;

/// Writes a temporary file beside the target, which commit() renames to the target. Without commit() the destructor
/// removes the temporary file.
class OutputFile final {
 public:
  /// Throws std::runtime_error with the reason of the system where nothing can be written there.
  explicit OutputFile(std::filesystem::path path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);
  /// Renames the temporary file to the target. Throws std::runtime_error where the disk is full or the target cannot be
  /// replaced.
  void commit();
  /// Returns the path of the bytes until commit().
  const std::filesystem::path& temporary() const { return temporary_; }

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::ofstream file_;
};

/// Compresses the bytes that it is given and passes them to `next`. finish() must be called once, after the last byte.
class GzipSink final {
 public:
  /// Level 1: traces repeat themselves, and level 6 takes three times as long for a sixth less.
  explicit GzipSink(ByteSink next, int level = 1);
  ~GzipSink();
  GzipSink(const GzipSink&) = delete;
  GzipSink& operator=(const GzipSink&) = delete;

  void write(std::string_view bytes);
  void finish();

 private:
  void run(std::string_view bytes, int flush);

  struct State;
  std::unique_ptr<State> state_;
  ByteSink next_;
};

}  // namespace decodelab
