// Streams the bytes of a file, unpacked if they are gzip, and keeps a parser from filling memory with a single value.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <streambuf>

#include <zlib.h>

namespace decodelab {

/// A stream for parsers that read byte by byte. Throws std::runtime_error from inside the parser where the file is cut
/// or damaged, or where more than `most_unread` bytes are read between two calls of reset_budget().
class GzipInput final : public std::streambuf {
 public:
  GzipInput(const std::filesystem::path& path, std::int64_t most_unread);
  ~GzipInput() override;
  GzipInput(const GzipInput&) = delete;
  GzipInput& operator=(const GzipInput&) = delete;

  /// Restarts the count of bytes; the parser calls this after each value, key or opening bracket that it has read.
  void reset_budget() { unread_ = 0; }

 protected:
  int_type underflow() override;

 private:
  gzFile file_;
  std::int64_t most_unread_;
  std::int64_t unread_ = 0;
  std::array<char, 1 << 16> block_{};
};

}  // namespace decodelab
