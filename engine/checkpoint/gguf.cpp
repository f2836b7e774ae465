// Checks the header of a GGUF file and turns it into a table of where each tensor lies.
#include "engine/checkpoint/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "engine/checkpoint/gguf_cursor.h"

namespace decodelab {
namespace {

constexpr std::string_view kGgufMagic = "GGUF";
constexpr std::uint32_t kFirstGgufVersion = 2;  // Version 1 had lengths of 32 bits.
constexpr std::uint32_t kLastGgufVersion = 3;   // As version 2, but may be big-endian.
constexpr std::string_view kGgufAlignmentKey = "general.alignment";
constexpr std::int64_t kGgufAlignment = 32;              // Where the metadata does not say.
constexpr std::uint32_t kMaxGgufDimensions = 4;          // GGML_MAX_DIMS.
constexpr std::uint64_t kGgufKeyBytes = 8 + 4 + 1;       // The least that a key takes: lengths and types, and one byte.
constexpr std::uint64_t kGgufInfoBytes = 8 + 4 + 4 + 8;  // The least that the description of a tensor takes.

// What the header says of one tensor; its data is not looked at yet.
struct GgufInfo {
  std::string name;
  GgufType type;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;  // From the beginning of the data.
};

[[noreturn]] void refuse_gguf_tensor(const std::string& file_name, std::string_view tensor, const std::string& what) {
  throw std::invalid_argument(
      fmt::format("{}: tensor {}: {}; the file is damaged or was cut short: fetch or write it again", file_name,
                  in_quotes(tensor), what));
}

std::uint32_t read_gguf_version(GgufCursor& cursor) {
  if (cursor.remaining() < kGgufMagic.size()) {
    throw std::invalid_argument(
        fmt::format("{}: expected a GGUF file, got {} bytes", cursor.file_name(), cursor.remaining()));
  }
  const auto magic = cursor.take(kGgufMagic.size(), "the magic");
  const std::string_view letters(reinterpret_cast<const char*>(magic.data()), magic.size());
  if (letters != kGgufMagic) {
    throw std::invalid_argument(fmt::format("{}: expected a file that begins with '{}', got {}; is it a GGUF file?",
                                            cursor.file_name(), kGgufMagic, in_quotes(letters)));
  }
  const auto version = cursor.number<std::uint32_t>("the version");
  if (version >= kFirstGgufVersion && version <= kLastGgufVersion) {
    return version;
  }
  const bool big_endian = version != 0 && (version & 0xffffu) == 0;
  throw std::invalid_argument(
      fmt::format("{}: expected a little-endian GGUF file of version {} or {}, got {}; convert it again with a current "
                  "converter",
                  cursor.file_name(), kFirstGgufVersion, kLastGgufVersion,
                  big_endian ? "a big-endian one" : fmt::format("version {}", version)));
}

std::vector<std::int64_t> read_gguf_shape(GgufCursor& cursor, std::string_view name) {
  const auto dimensions = cursor.number<std::uint32_t>("the number of dimensions");
  if (dimensions > kMaxGgufDimensions) {
    refuse_gguf_tensor(cursor.file_name(), name,
                       fmt::format("expected at most {} dimensions, got {}", kMaxGgufDimensions, dimensions));
  }
  std::vector<std::int64_t> shape(dimensions);
  for (auto dimension = shape.rbegin(); dimension != shape.rend(); ++dimension) {
    const auto size = cursor.number<std::uint64_t>("a dimension");
    if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      refuse_gguf_tensor(cursor.file_name(), name, fmt::format("expected dimensions below 2^63, got {}", size));
    }
    *dimension = static_cast<std::int64_t>(size);
  }
  return shape;
}

// Returns the bytes of a tensor whose rows are whole blocks.
std::uint64_t gguf_tensor_bytes(const GgufInfo& info, const std::string& file_name) {
  const GgufEncoding* encoding = find_gguf_encoding(info.type);
  if (encoding == nullptr) {
    refuse_gguf_tensor(
        file_name, info.name,
        fmt::format("expected a type that ggml has, such as F16 (1), got {}", gguf_type_name(info.type)));
  }
  const std::int64_t row = info.shape.empty() ? 1 : info.shape.back();
  if (row % encoding->block_elements != 0) {
    refuse_gguf_tensor(file_name, info.name,
                       fmt::format("expected rows of whole blocks of {} elements for {}, got rows of {}",
                                   encoding->block_elements, encoding->name, row));
  }
  std::int64_t elements = 1;
  bool overflow = false;
  for (const std::int64_t dimension : info.shape) {
    overflow |= __builtin_mul_overflow(elements, dimension, &elements);
  }
  std::int64_t bytes = 0;
  overflow |= __builtin_mul_overflow(elements / encoding->block_elements, encoding->block_bytes, &bytes);
  if (overflow) {
    refuse_gguf_tensor(file_name, info.name,
                       fmt::format("expected a size below 2^63, got the shape [{}]", fmt::join(info.shape, ", ")));
  }
  return static_cast<std::uint64_t>(bytes);
}

GgufInfo read_gguf_info(GgufCursor& cursor) {
  GgufInfo info{.name = std::string(cursor.text("the name of a tensor")), .type = {}};
  info.shape = read_gguf_shape(cursor, info.name);
  info.type = GgufType{cursor.number<std::uint32_t>("the type of a tensor")};
  info.offset = cursor.number<std::uint64_t>("the offset of a tensor");
  info.bytes = gguf_tensor_bytes(info, cursor.file_name());
  return info;
}

std::int64_t gguf_alignment(const GgufMetadata& metadata) {
  if (!metadata.contains(kGgufAlignmentKey)) {
    return kGgufAlignment;
  }
  const std::int64_t alignment = metadata.integer(kGgufAlignmentKey);
  if (alignment <= 0 || !std::has_single_bit(static_cast<std::uint64_t>(alignment))) {
    throw std::invalid_argument(fmt::format("{}: key '{}': expected a power of two, got {}; write the file again",
                                            metadata.file_name(), kGgufAlignmentKey, alignment));
  }
  return alignment;
}

// Returns what comes after the header and its padding. A file without tensors may end before the padding does.
std::span<const std::byte> gguf_data(std::span<const std::byte> file, std::uint64_t header_bytes,
                                     std::int64_t alignment) {
  const std::uint64_t beyond = header_bytes % static_cast<std::uint64_t>(alignment);
  const std::uint64_t padding = beyond == 0 ? 0 : static_cast<std::uint64_t>(alignment) - beyond;
  return padding > file.size() - header_bytes ? std::span<const std::byte>() : file.subspan(header_bytes + padding);
}

void check_gguf_ranges(std::vector<GgufInfo>& infos, std::uint64_t data_bytes, std::int64_t alignment,
                       const std::string& file_name) {
  std::ranges::sort(infos, {}, [](const GgufInfo& info) { return std::pair(info.offset, info.bytes); });
  std::uint64_t end = 0;
  for (const GgufInfo& info : infos) {
    if (info.offset % static_cast<std::uint64_t>(alignment) != 0) {
      refuse_gguf_tensor(file_name, info.name,
                         fmt::format("expected an offset that is a multiple of {}, got {}", alignment, info.offset));
    }
    if (info.offset > data_bytes || info.bytes > data_bytes - info.offset) {
      refuse_gguf_tensor(file_name, info.name,
                         fmt::format("expected its {} bytes from {} on to lie within the file's {} data bytes, got an "
                                     "end beyond them",
                                     info.bytes, info.offset, data_bytes));
    }
    if (info.offset < end) {
      refuse_gguf_tensor(file_name, info.name,
                         fmt::format("expected its data to begin at {} or later, where the one before ends, got {} "
                                     "(they overlap)",
                                     end, info.offset));
    }
    end = info.offset + info.bytes;
  }
}

}  // namespace

std::int64_t GgufTensor::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dimension : shape) {
    product *= dimension;
  }
  return product;
}

const GgufTensor& GgufFile::tensor(std::string_view name) const {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    throw std::invalid_argument(fmt::format(
        "{}: expected the tensor {}, got none of this name; is the file complete, and of a supported model?",
        metadata.file_name(), in_quotes(name)));
  }
  if (!can_dequantize(found->second.type)) {
    throw std::invalid_argument(
        fmt::format("{}: tensor {}: expected {}, got {}; quantize the model again to "
                    "one of these types",
                    metadata.file_name(), in_quotes(name), kReadableGgufTypes, gguf_type_name(found->second.type)));
  }
  return found->second;
}

GgufFile parse_gguf(std::span<const std::byte> file, const std::string& file_name) {
  GgufCursor cursor(file, file_name);
  const std::uint32_t version = read_gguf_version(cursor);
  const std::uint64_t tensor_count = cursor.count(kGgufInfoBytes, "a number of tensors");
  const std::uint64_t key_count = cursor.count(kGgufKeyBytes, "a number of keys");
  GgufMetadata metadata(cursor, key_count);

  std::vector<GgufInfo> infos;
  for (std::uint64_t i = 0; i < tensor_count; ++i) {
    infos.push_back(read_gguf_info(cursor));
  }
  const std::int64_t alignment = gguf_alignment(metadata);
  const auto data = gguf_data(file, cursor.position(), alignment);
  check_gguf_ranges(infos, data.size(), alignment, file_name);

  GgufFile result{.version = version, .alignment = alignment, .metadata = std::move(metadata), .tensors = {}};
  for (GgufInfo& info : infos) {
    const GgufTensor tensor{
        .type = info.type, .shape = std::move(info.shape), .data = data.subspan(info.offset, info.bytes)};
    if (!result.tensors.emplace(info.name, tensor).second) {
      refuse_gguf_tensor(file_name, info.name, "expected every tensor once, got it twice");
    }
  }
  return result;
}

bool is_gguf(const std::filesystem::path& file) {
  std::array<char, kGgufMagic.size()> letters{};
  std::ifstream stream(file, std::ios::binary);
  return stream.read(letters.data(), letters.size()) && std::string_view(letters.data(), letters.size()) == kGgufMagic;
}

GgufReader::GgufReader(const std::filesystem::path& file)
    : map_(file), file_(parse_gguf(map_.bytes(), file.string())) {}

}  // namespace decodelab
