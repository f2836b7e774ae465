// Lines that come through a descriptor, with a time limit.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace decodelab {

/// Reads lines from a descriptor that it does not own.
class LineReader {
 public:
  explicit LineReader(int descriptor) : descriptor_(descriptor) {}

  /// Returns the next whole line without its end, or nothing after `timeout_ms` without one; check ended() then. Throws
  /// std::runtime_error for a line of more than kLongestLine bytes.
  std::optional<std::string> next(int timeout_ms);
  /// Returns whether the other side has closed and every whole line was read.
  bool ended() const { return ended_ && buffer_.find('\n') == std::string::npos; }

  /// A limit of memory, far above the longest message (the prompts of a large batch).
  static constexpr std::size_t kLongestLine = std::size_t{64} << 20;

 private:
  int descriptor_;
  bool ended_ = false;
  std::string buffer_;
  std::size_t searched_ = 0;  ///< Bytes of the buffer that hold no end of a line.
};

}  // namespace decodelab
