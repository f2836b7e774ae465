// The keys and values with which a GGUF file describes its model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/checkpoint/gguf_cursor.h"

namespace decodelab {

/// The types of values, with the numbers that a file has for them.
enum class GgufValueType : std::uint32_t {
  uint8,
  int8,
  uint16,
  int16,
  uint32,
  int32,
  float32,
  boolean,
  text,
  array,
  uint64,
  int64,
  float64
};

/// Holds an array as it stands in the file, checked and not yet decoded: vocabularies are large, and most are not read.
struct GgufArray {
  GgufValueType element_type;
  std::uint64_t count = 0;
  std::span<const std::byte> bytes;  ///< All elements, in the file.
};

/// Holds an unsigned integer, a signed one, a float of 32 or 64 bits, true or false, a text in the file, or an array.
using GgufValue = std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, GgufArray>;

/// Holds all keys of one file. Texts and arrays point into the file's bytes, which must live as long.
///
/// The accessors throw std::invalid_argument naming the file, the key, what was expected and what was found, when the
/// key is missing or its value is of another type.
class GgufMetadata {
 public:
  /// Reads `count` keys with their values. Throws std::invalid_argument naming the file and the position when the file
  /// ends before them, for an empty key, a key that stands twice, an unknown type, a boolean that is neither 0 nor 1,
  /// and arrays of arrays that are nested deeper than 4 levels.
  GgufMetadata(GgufCursor& cursor, std::uint64_t count);

  const std::string& file_name() const { return file_name_; }
  const std::map<std::string, GgufValue, std::less<>>& values() const { return values_; }
  bool contains(std::string_view key) const { return values_.contains(key); }

  /// Returns an integer of any width and sign; refuses one of 2^63 or more.
  std::int64_t integer(std::string_view key) const;
  /// Returns a float, or an integer as the nearest double.
  double number(std::string_view key) const;
  bool boolean(std::string_view key) const;
  std::string_view text(std::string_view key) const;

  /// The same for arrays; one of arrays is no array of any of these.
  std::vector<std::int64_t> integers(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;
  std::vector<bool> booleans(std::string_view key) const;
  std::vector<std::string_view> texts(std::string_view key) const;

 private:
  std::string file_name_;
  std::map<std::string, GgufValue, std::less<>> values_;
};

}  // namespace decodelab
