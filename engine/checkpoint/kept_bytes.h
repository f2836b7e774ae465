// Keeps values that are expensive to compute and follow from their key, in a folder of the cache with a size limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace decodelab {

/// Stores values by key, one file each. A value that cannot be read or kept, or differs from what was written, is
/// treated as missing: nothing here throws but std::bad_alloc.
class KeptBytes {
 public:
  /// Values above this size are not kept.
  static constexpr std::size_t kMostOfOne = std::size_t{256} << 20;
  /// Limit on the bytes of all values of a folder; beyond it the values that were not used for longest are removed.
  static constexpr std::uintmax_t kMostOfAll = std::uintmax_t{2} << 30;

  explicit KeptBytes(std::filesystem::path folder, std::uintmax_t most_of_all = kMostOfAll)
      : folder_(std::move(folder)), most_of_all_(most_of_all) {}

  std::optional<std::vector<std::byte>> read(const std::string& key) const;
  /// Returns when the value is on the disk, so that no later write disturbs a timed step.
  void keep(const std::string& key, std::span<const std::byte> value) const;

 private:
  std::filesystem::path path_of(const std::string& key) const;
  void make_room(std::uintmax_t bytes) const;

  std::filesystem::path folder_;
  std::uintmax_t most_of_all_;
};

/// Reads the values that BytesWriter wrote, in the same order. Throws std::out_of_range past the end.
class BytesReader {
 public:
  explicit BytesReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::int64_t number();
  std::vector<std::int64_t> numbers();
  std::vector<float> floats();
  std::span<const std::byte> bytes();
  bool at_end() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> take(std::size_t size);

  std::span<const std::byte> bytes_;
};

class BytesWriter {
 public:
  void number(std::int64_t value);
  void numbers(std::span<const std::int64_t> values);
  void floats(std::span<const float> values);
  void bytes(std::span<const std::byte> values);
  const std::vector<std::byte>& written() const { return written_; }

 private:
  std::vector<std::byte> written_;
};

}  // namespace decodelab
