// Writes small GGUF files in memory, right ones and wrong ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/checkpoint/gguf_blocks.h"
#include "engine/checkpoint/gguf_metadata.h"

namespace decodelab {

/// The bytes of a number, as a GGUF file has them.
template <typename Number>
std::string gguf_bytes(Number number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

/// A text with its length before it.
inline std::string gguf_text_bytes(std::string_view text) {
  return gguf_bytes(std::uint64_t{text.size()}) + std::string(text);
}

/// The elements of an array of numbers or texts, with their type and their number before them.
template <typename Element>
std::string gguf_array_bytes(GgufValueType type, const std::vector<Element>& elements) {
  std::string bytes = gguf_bytes(static_cast<std::uint32_t>(type)) + gguf_bytes(std::uint64_t{elements.size()});
  for (const Element& element : elements) {
    if constexpr (std::is_arithmetic_v<Element>) {
      bytes += gguf_bytes(element);
    } else {
      bytes += gguf_text_bytes(element);
    }
  }
  return bytes;
}

/// A copy in memory of exactly the file's size, so that a sanitizer sees a step beyond it.
inline std::vector<std::byte> gguf_copy(const std::string& file) {
  const auto bytes = std::as_bytes(std::span(file));
  return {bytes.begin(), bytes.end()};
}

/// Collects keys and tensors. The members that are public may be set to what no writer should write.
class GgufWriter {
 public:
  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;    ///< Of the data; the file says so only where a key general.alignment is added.
  std::int64_t extra_keys = 0;     ///< How many more keys the header promises than there are.
  std::int64_t extra_tensors = 0;  ///< The same for tensors.

  /// Adds a key whose value has these bytes.
  GgufWriter& key(std::string_view name, GgufValueType type, const std::string& value) {
    keys_ += gguf_text_bytes(name) + gguf_bytes(static_cast<std::uint32_t>(type)) + value;
    ++key_count_;
    return *this;
  }
  GgufWriter& integer(std::string_view name, std::uint32_t value) {
    return key(name, GgufValueType::uint32, gguf_bytes(value));
  }
  GgufWriter& boolean(std::string_view name, bool value) {
    return key(name, GgufValueType::boolean, gguf_bytes(std::uint8_t{value}));
  }
  GgufWriter& text(std::string_view name, std::string_view value) {
    return key(name, GgufValueType::text, gguf_text_bytes(value));
  }
  GgufWriter& integers(std::string_view name, const std::vector<std::int32_t>& values) {
    return key(name, GgufValueType::array, gguf_array_bytes(GgufValueType::int32, values));
  }
  GgufWriter& floats(std::string_view name, const std::vector<float>& values) {
    return key(name, GgufValueType::array, gguf_array_bytes(GgufValueType::float32, values));
  }
  GgufWriter& texts(std::string_view name, const std::vector<std::string>& values) {
    return key(name, GgufValueType::array, gguf_array_bytes(GgufValueType::text, values));
  }

  /// Describes a tensor; `dimensions` are in the file's order, the fastest first.
  GgufWriter& info(std::string_view name, const std::vector<std::uint64_t>& dimensions, GgufType type,
                   std::uint64_t offset) {
    infos_ += gguf_text_bytes(name) + gguf_bytes(static_cast<std::uint32_t>(dimensions.size()));
    for (const std::uint64_t dimension : dimensions) {
      infos_ += gguf_bytes(dimension);
    }
    infos_ += gguf_bytes(static_cast<std::uint32_t>(type)) + gguf_bytes(offset);
    ++tensor_count_;
    return *this;
  }
  /// Adds bytes to the data.
  GgufWriter& data(std::string_view bytes) {
    data_ += bytes;
    return *this;
  }
  /// Describes a tensor and adds its data at the next multiple of the alignment.
  GgufWriter& tensor(std::string_view name, const std::vector<std::uint64_t>& dimensions, GgufType type,
                     std::string_view bytes) {
    pad(data_);
    return info(name, dimensions, type, data_.size()).data(bytes);
  }

  /// The header without the padding after it.
  std::string header() const {
    return magic + gguf_bytes(version) + gguf_bytes(tensor_count_ + static_cast<std::uint64_t>(extra_tensors)) +
           gguf_bytes(key_count_ + static_cast<std::uint64_t>(extra_keys)) + keys_ + infos_;
  }
  std::string file() const {
    std::string file = header();
    pad(file);
    return file + data_;
  }

 private:
  void pad(std::string& bytes) const { bytes.resize((bytes.size() + alignment - 1) / alignment * alignment, '\0'); }

  std::uint64_t key_count_ = 0;
  std::uint64_t tensor_count_ = 0;
  std::string keys_;
  std::string infos_;
  std::string data_;
};

}  // namespace decodelab
