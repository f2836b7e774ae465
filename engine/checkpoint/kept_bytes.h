// Keeps what is dear to compute and follows from its key, in a folder of the cache that stays within bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace decodelab {

/// Values by key, a file each. A value that cannot be read or kept, or is not what was written, is as if it were not
/// there: nothing here throws but std::bad_alloc.
class KeptBytes {
 public:
  /// A larger value is not kept.
  static constexpr std::size_t kMostOfOne = std::size_t{256} << 20;
  /// What all values of a folder may take; beyond it those that were not used for longest go.
  static constexpr std::uintmax_t kMostOfAll = std::uintmax_t{2} << 30;

  explicit KeptBytes(std::filesystem::path folder, std::uintmax_t most_of_all = kMostOfAll)
      : folder_(std::move(folder)), most_of_all_(most_of_all) {}

  std::optional<std::vector<std::byte>> read(const std::string& key) const;
  /// Returns when the value is on the disk: nothing is written later, beside a timed step.
  void keep(const std::string& key, std::span<const std::byte> value) const;

 private:
  std::filesystem::path path_of(const std::string& key) const;
  void make_room(std::uintmax_t bytes) const;

  std::filesystem::path folder_;
  std::uintmax_t most_of_all_;
};

/// Takes values apart that BytesWriter put together. read() throws std::out_of_range past the end.
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
