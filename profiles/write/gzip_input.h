// A stream of a file's bytes, unpacked on the way if they are gzip, that refuses to fill memory with a single value.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <streambuf>

#include <zlib.h>

namespace decodelab {

/// For parsers that ask a stream for its next byte. Throws std::runtime_error from inside the parser where the file is
/// cut, damaged, or more than `most_unread` bytes long between two calls of reset_budget().
class GzipInput final : public std::streambuf {
 public:
  GzipInput(const std::filesystem::path& path, std::int64_t most_unread);
  ~GzipInput() override;
  GzipInput(const GzipInput&) = delete;
  GzipInput& operator=(const GzipInput&) = delete;

  /// The parser has got somewhere.
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
