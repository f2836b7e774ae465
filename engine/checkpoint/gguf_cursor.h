// Walks through the bytes of a GGUF file and refuses every step beyond their end.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace decodelab {

static_assert(std::endian::native == std::endian::little,
              "GGUF files are little-endian, and numbers are copied as they lie in the file");

/// Reads numbers and texts one after the other. Nothing is copied, and nothing is allocated before a length is checked.
///
/// Every read names what it reads (`what`, "the length of a key") for the std::invalid_argument that is thrown when the
/// file ends before it. `bytes` and `file_name` are borrowed.
class GgufCursor {
 public:
  GgufCursor(std::span<const std::byte> bytes, const std::string& file_name) : bytes_(bytes), file_name_(&file_name) {}

  /// Returns the next `count` bytes.
  std::span<const std::byte> take(std::uint64_t count, std::string_view what) {
    if (count > remaining()) {
      refuse(fmt::format("{} bytes for {}", count, what), fmt::format("{} to the end of the file", remaining()));
    }
    const auto taken = bytes_.subspan(position_, count);
    position_ += count;
    return taken;
  }

  /// Returns the next number, stored in as many bytes as `Number` has; it need not be aligned.
  template <typename Number>
  Number number(std::string_view what) {
    Number value;
    std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
    return value;
  }

  /// Returns the next text, which is stored as a length of 8 bytes and then the bytes. It points into the file.
  std::string_view text(std::string_view what) {
    const auto bytes = take(number<std::uint64_t>(what), what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  /// Returns a count of entries that take at least `bytes_each` each, so that the rest of the file can hold them.
  std::uint64_t count(std::uint64_t bytes_each, std::string_view what) {
    const auto value = number<std::uint64_t>(what);
    if (value > remaining() / bytes_each) {
      refuse(fmt::format("{} of at most {}, since {} bytes are left", what, remaining() / bytes_each, remaining()),
             fmt::to_string(value));
    }
    return value;
  }

  /// Returns the bytes read so far, which is the position of the next one in the file.
  std::uint64_t position() const { return position_; }
  /// Returns the bytes from an earlier position to this one.
  std::span<const std::byte> since(std::uint64_t position) const {
    return bytes_.subspan(position, position_ - position);
  }
  std::uint64_t remaining() const { return bytes_.size() - position_; }
  const std::string& file_name() const { return *file_name_; }

  /// Throws std::invalid_argument with the position.
  [[noreturn]] void refuse(std::string_view expected, std::string_view got) const {
    throw std::invalid_argument(fmt::format(
        "{}: at byte {}: expected {}, got {}; the file is damaged or was cut short: fetch or write it again",
        *file_name_, position_, expected, got));
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string* file_name_;
  std::uint64_t position_ = 0;
};

}  // namespace decodelab
