// Reads the keys and values of a GGUF file, and gives them out by type.
#include "engine/checkpoint/gguf_metadata.h"

#include <array>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace decodelab {
namespace {

constexpr int kMaxGgufArrayDepth = 4;             // Real files have arrays of scalars and texts only.
constexpr std::uint64_t kGgufTextBytes = 8;       // The least that a text takes: its length.
constexpr std::uint64_t kGgufArrayBytes = 4 + 8;  // The least that an array takes: its type and its length.

constexpr std::array<std::string_view, 13> kGgufValueNames{"uint8",  "int8",    "uint16",  "int16", "uint32",
                                                           "int32",  "float32", "boolean", "text",  "array",
                                                           "uint64", "int64",   "float64"};

std::string_view gguf_value_name(GgufValueType type) { return kGgufValueNames[static_cast<std::size_t>(type)]; }

GgufValueType read_gguf_value_type(GgufCursor& cursor) {
  const auto type = cursor.number<std::uint32_t>("the type of a value");
  if (type >= kGgufValueNames.size()) {
    cursor.refuse(fmt::format("the type of a value, from 0 to {}", kGgufValueNames.size() - 1), fmt::to_string(type));
  }
  return GgufValueType{type};
}

bool read_gguf_boolean(GgufCursor& cursor) {
  const auto byte = cursor.number<std::uint8_t>("a boolean");
  if (byte > 1) {
    cursor.refuse("a boolean, 0 or 1", fmt::to_string(byte));
  }
  return byte == 1;
}

// Reads anything but an array.
GgufValue read_gguf_scalar(GgufCursor& cursor, GgufValueType type) {
  const std::string_view what = gguf_value_name(type);
  switch (type) {
    case GgufValueType::uint8: return std::uint64_t{cursor.number<std::uint8_t>(what)};
    case GgufValueType::uint16: return std::uint64_t{cursor.number<std::uint16_t>(what)};
    case GgufValueType::uint32: return std::uint64_t{cursor.number<std::uint32_t>(what)};
    case GgufValueType::uint64: return cursor.number<std::uint64_t>(what);
    case GgufValueType::int8: return std::int64_t{cursor.number<std::int8_t>(what)};
    case GgufValueType::int16: return std::int64_t{cursor.number<std::int16_t>(what)};
    case GgufValueType::int32: return std::int64_t{cursor.number<std::int32_t>(what)};
    case GgufValueType::int64: return cursor.number<std::int64_t>(what);
    case GgufValueType::float32: return double{cursor.number<float>(what)};
    case GgufValueType::float64: return cursor.number<double>(what);
    case GgufValueType::boolean: return read_gguf_boolean(cursor);
    case GgufValueType::text: return cursor.text(what);
    case GgufValueType::array: break;
  }
  throw std::logic_error("read_gguf_scalar: an array is no scalar");
}

// The bytes of one element; 0 where they differ from element to element, or must be looked at.
std::uint64_t gguf_fixed_bytes(GgufValueType type) {
  switch (type) {
    case GgufValueType::uint8:
    case GgufValueType::int8: return 1;
    case GgufValueType::uint16:
    case GgufValueType::int16: return 2;
    case GgufValueType::uint32:
    case GgufValueType::int32:
    case GgufValueType::float32: return 4;
    case GgufValueType::uint64:
    case GgufValueType::int64:
    case GgufValueType::float64: return 8;
    case GgufValueType::boolean:
    case GgufValueType::text:
    case GgufValueType::array: break;
  }
  return 0;
}

std::uint64_t gguf_least_bytes(GgufValueType type) {
  switch (type) {
    case GgufValueType::boolean: return 1;
    case GgufValueType::text: return kGgufTextBytes;
    case GgufValueType::array: return kGgufArrayBytes;
    default: return gguf_fixed_bytes(type);
  }
}

GgufArray read_gguf_array(GgufCursor& cursor, int depth) {
  if (depth > kMaxGgufArrayDepth) {
    cursor.refuse(fmt::format("arrays nested at most {} deep", kMaxGgufArrayDepth), "one more");
  }
  const GgufValueType type = read_gguf_value_type(cursor);
  const std::uint64_t count = cursor.count(gguf_least_bytes(type), "the length of an array");
  const std::uint64_t begin = cursor.position();
  if (const std::uint64_t each = gguf_fixed_bytes(type); each != 0) {
    cursor.take(count * each, "an array");
  } else {
    for (std::uint64_t i = 0; i < count; ++i) {
      if (type == GgufValueType::array) {
        read_gguf_array(cursor, depth + 1);
      } else {
        read_gguf_scalar(cursor, type);
      }
    }
  }
  return {.element_type = type, .count = count, .bytes = cursor.since(begin)};
}

std::string describe_gguf_value(const GgufValue& value) {
  struct Describe {
    std::string operator()(std::uint64_t found) const { return fmt::format("the integer {}", found); }
    std::string operator()(std::int64_t found) const { return fmt::format("the integer {}", found); }
    std::string operator()(double found) const { return fmt::format("the float {}", found); }
    std::string operator()(bool found) const { return found ? "true" : "false"; }
    std::string operator()(std::string_view found) const { return fmt::format("the text {}", in_quotes(found)); }
    std::string operator()(const GgufArray& found) const {
      return fmt::format("an array of {} values of the type {}", found.count, gguf_value_name(found.element_type));
    }
  };
  return std::visit(Describe{}, value);
}

// One conversion for a scalar and for the elements of an array; nothing where the type is another.
std::optional<std::int64_t> gguf_integer(const GgufValue& value) {
  if (const auto* found = std::get_if<std::int64_t>(&value)) {
    return *found;
  }
  const auto* found = std::get_if<std::uint64_t>(&value);
  if (found == nullptr || *found > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(*found);
}

std::optional<double> gguf_number(const GgufValue& value) {
  if (const auto* found = std::get_if<double>(&value)) {
    return *found;
  }
  if (const auto* found = std::get_if<std::int64_t>(&value)) {
    return static_cast<double>(*found);
  }
  if (const auto* found = std::get_if<std::uint64_t>(&value)) {
    return static_cast<double>(*found);
  }
  return std::nullopt;
}

template <typename Type>
std::optional<Type> gguf_exactly(const GgufValue& value) {
  const auto* found = std::get_if<Type>(&value);
  return found == nullptr ? std::nullopt : std::optional<Type>(*found);
}

[[noreturn]] void refuse_gguf_key(const GgufMetadata& metadata, std::string_view key, std::string_view expected,
                                  const std::string& got) {
  throw std::invalid_argument(
      fmt::format("{}: key {}: expected {}, got {}; convert the model again with a current converter",
                  metadata.file_name(), in_quotes(key), expected, got));
}

const GgufValue& find_gguf_value(const GgufMetadata& metadata, std::string_view key, std::string_view expected) {
  const auto found = metadata.values().find(key);
  if (found == metadata.values().end()) {
    refuse_gguf_key(metadata, key, expected, "no such key");
  }
  return found->second;
}

template <typename Convert>
auto convert_gguf_value(const GgufMetadata& metadata, std::string_view key, std::string_view expected,
                        Convert convert) {
  const GgufValue& value = find_gguf_value(metadata, key, expected);
  const auto converted = convert(value);
  if (!converted.has_value()) {
    refuse_gguf_key(metadata, key, expected, describe_gguf_value(value));
  }
  return *converted;
}

template <typename Type, typename Convert>
std::vector<Type> convert_gguf_array(const GgufMetadata& metadata, std::string_view key, std::string_view expected,
                                     Convert convert) {
  const GgufValue& value = find_gguf_value(metadata, key, expected);
  const auto* array = std::get_if<GgufArray>(&value);
  if (array == nullptr || array->element_type == GgufValueType::array) {
    refuse_gguf_key(metadata, key, expected, describe_gguf_value(value));
  }
  std::vector<Type> elements;
  GgufCursor cursor(array->bytes, metadata.file_name());
  for (std::uint64_t i = 0; i < array->count; ++i) {
    const GgufValue element = read_gguf_scalar(cursor, array->element_type);
    const std::optional<Type> converted = convert(element);
    if (!converted.has_value()) {
      refuse_gguf_key(metadata, key, expected,
                      fmt::format("{} with {}", describe_gguf_value(value), describe_gguf_value(element)));
    }
    elements.push_back(*converted);
  }
  return elements;
}

}  // namespace

GgufMetadata::GgufMetadata(GgufCursor& cursor, std::uint64_t count) : file_name_(cursor.file_name()) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string_view key = cursor.text("a key");
    if (key.empty()) {
      cursor.refuse("a key of at least one byte", "an empty one");
    }
    const GgufValueType type = read_gguf_value_type(cursor);
    GgufValue value =
        type == GgufValueType::array ? GgufValue(read_gguf_array(cursor, 1)) : read_gguf_scalar(cursor, type);
    if (!values_.emplace(key, value).second) {
      cursor.refuse("every key once", fmt::format("{} twice", in_quotes(key)));
    }
  }
}

std::int64_t GgufMetadata::integer(std::string_view key) const {
  return convert_gguf_value(*this, key, "an integer below 2^63", gguf_integer);
}

double GgufMetadata::number(std::string_view key) const {
  return convert_gguf_value(*this, key, "a number", gguf_number);
}

bool GgufMetadata::boolean(std::string_view key) const {
  return convert_gguf_value(*this, key, "true or false", gguf_exactly<bool>);
}

std::string_view GgufMetadata::text(std::string_view key) const {
  return convert_gguf_value(*this, key, "a text", gguf_exactly<std::string_view>);
}

std::vector<std::int64_t> GgufMetadata::integers(std::string_view key) const {
  return convert_gguf_array<std::int64_t>(*this, key, "an array of integers below 2^63", gguf_integer);
}

std::vector<double> GgufMetadata::numbers(std::string_view key) const {
  return convert_gguf_array<double>(*this, key, "an array of numbers", gguf_number);
}

std::vector<bool> GgufMetadata::booleans(std::string_view key) const {
  return convert_gguf_array<bool>(*this, key, "an array of booleans", gguf_exactly<bool>);
}

std::vector<std::string_view> GgufMetadata::texts(std::string_view key) const {
  return convert_gguf_array<std::string_view>(*this, key, "an array of texts", gguf_exactly<std::string_view>);
}

}  // namespace decodelab
