// Checks the header of a safetensors file and turns it into a table of where each tensor lies.
#include "engine/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/text.h"

namespace decodelab {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // The official implementation's limit.

struct Dtype {
  std::string_view name;
  std::uint64_t bits;
};

// All dtypes of safetensors 0.8 (safetensors/src/tensor.rs); those below one byte must fill whole bytes.
constexpr std::array<Dtype, 22> kDtypes{{
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
    {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64},
}};

// One header entry, still with offsets instead of bytes.
struct Entry {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

[[noreturn]] void refuse(const std::string& file_name, std::string_view tensor, const std::string& what) {
  throw std::invalid_argument(
      fmt::format("{}: tensor {}: {}; the file is damaged or was cut short: fetch or write it again", file_name,
                  in_quotes(tensor), what));
}

std::uint64_t header_bytes(std::span<const std::byte> file, const std::string& file_name) {
  if (file.size() < kLengthBytes) {
    throw std::invalid_argument(fmt::format("{}: expected a safetensors file of at least {} bytes, got {}", file_name,
                                            kLengthBytes, file.size()));
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length |= std::to_integer<std::uint64_t>(file[i]) << (8 * i);
  }
  if (length > kMaxHeaderBytes) {
    throw std::invalid_argument(
        fmt::format("{}: expected a header of at most {} bytes, got {}; is it a safetensors file?", file_name,
                    kMaxHeaderBytes, length));
  }
  if (length > file.size() - kLengthBytes) {
    throw std::invalid_argument(
        fmt::format("{}: expected a header of {} bytes, got a file with {} bytes after the length; the file was cut "
                    "short: fetch it again",
                    file_name, length, file.size() - kLengthBytes));
  }
  return length;
}

const json& member(const json& object, const char* key, const std::string& file_name, std::string_view tensor) {
  const auto found = object.find(key);
  if (found == object.end()) {
    refuse(file_name, tensor, fmt::format("expected the key '{}', got none", key));
  }
  return *found;
}

std::vector<std::int64_t> shape_of(const json& value, const std::string& file_name, std::string_view tensor) {
  if (!value.is_array()) {
    refuse(file_name, tensor, fmt::format("expected 'shape' as a list, got {}", shown(value)));
  }
  std::vector<std::int64_t> shape;
  shape.reserve(value.size());
  for (const json& dimension : value) {
    if (!dimension.is_number_unsigned() ||
        dimension.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      refuse(file_name, tensor, fmt::format("expected dimensions from 0 to 2^63 - 1, got {}", shown(value)));
    }
    shape.push_back(dimension.get<std::int64_t>());
  }
  return shape;
}

// Returns the bytes of a shape, multiplied in the order of the shape like the official code, so that both refuse the
// same files.
std::uint64_t bytes_of(const std::vector<std::int64_t>& shape, std::uint64_t bits_each, const std::string& file_name,
                       std::string_view tensor) {
  std::uint64_t count = 1;
  bool overflow = false;
  for (const std::int64_t dimension : shape) {
    overflow |= __builtin_mul_overflow(count, static_cast<std::uint64_t>(dimension), &count);
  }
  overflow |= __builtin_mul_overflow(count, bits_each, &count);
  if (overflow) {
    refuse(file_name, tensor,
           fmt::format("expected a size below 2^64 bits, got the shape [{}]", fmt::join(shape, ", ")));
  }
  if (count % 8 != 0) {
    refuse(file_name, tensor, fmt::format("expected whole bytes, got {} bits", count));
  }
  return count / 8;
}

Entry entry_of(const std::string& name, const json& value, const std::string& file_name) {
  if (!value.is_object()) {
    refuse(file_name, name, fmt::format("expected an object with dtype, shape and data_offsets, got {}", shown(value)));
  }
  const json& dtype = member(value, "dtype", file_name, name);
  const auto known =
      dtype.is_string() ? std::ranges::find(kDtypes, dtype.get_ref<const std::string&>(), &Dtype::name) : kDtypes.end();
  if (known == kDtypes.end()) {
    refuse(file_name, name, fmt::format("expected a dtype such as F32, F16 or BF16, got {}", shown(dtype)));
  }

  const json& offsets = member(value, "data_offsets", file_name, name);
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    refuse(file_name, name,
           fmt::format("expected 'data_offsets' as two non-negative integers, got {}", shown(offsets)));
  }
  Entry entry{.name = name,
              .dtype = std::string(known->name),
              .shape = shape_of(member(value, "shape", file_name, name), file_name, name),
              .begin = offsets[0].get<std::uint64_t>(),
              .end = offsets[1].get<std::uint64_t>()};
  if (entry.end < entry.begin) {
    refuse(file_name, name, fmt::format("expected offsets in order, got [{}, {}]", entry.begin, entry.end));
  }
  const std::uint64_t expected = bytes_of(entry.shape, known->bits, file_name, name);
  if (entry.end - entry.begin != expected) {
    refuse(file_name, name,
           fmt::format("expected {} bytes for {} [{}], got {}", expected, entry.dtype, fmt::join(entry.shape, ", "),
                       entry.end - entry.begin));
  }
  return entry;
}

// `__metadata__` is free text of whoever wrote the file; it is checked for its form only, and not read.
void check_metadata(const json& value, const std::string& file_name) {
  const bool fits = value.is_null() || (value.is_object() &&
                                        std::ranges::all_of(value, [](const json& text) { return text.is_string(); }));
  if (!fits) {
    throw std::invalid_argument(
        fmt::format("{}: expected __metadata__ as an object of strings, got {}", file_name, shown(value)));
  }
}

// The tensors must cover the data without holes and overlap, so that a file has one meaning and no hidden bytes.
void check_cover(std::vector<Entry>& entries, std::uint64_t data_bytes, const std::string& file_name) {
  std::ranges::sort(entries, {}, [](const Entry& entry) { return std::pair(entry.begin, entry.end); });
  std::uint64_t covered = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != covered) {
      refuse(file_name, entry.name,
             fmt::format("expected its data to begin at {}, where the one before ends, got {} ({})", covered,
                         entry.begin, entry.begin < covered ? "they overlap" : "there is a hole"));
    }
    if (entry.end > data_bytes) {
      refuse(file_name, entry.name,
             fmt::format("expected its data to end within the file's {} data bytes, got {}", data_bytes, entry.end));
    }
    covered = entry.end;
  }
  if (covered != data_bytes) {
    throw std::invalid_argument(fmt::format("{}: expected {} bytes of data, got {}: {} bytes belong to no tensor",
                                            file_name, covered, data_bytes, data_bytes - covered));
  }
}

}  // namespace

std::string_view safetensors_name(ElementType type) {
  switch (type) {
    case ElementType::float32: return "F32";
    case ElementType::float16: return "F16";
    case ElementType::bfloat16: break;
  }
  return "BF16";
}

ElementType StoredTensor::element_type(std::string_view name) const {
  for (const ElementType type : {ElementType::float32, ElementType::float16, ElementType::bfloat16}) {
    if (dtype == safetensors_name(type)) {
      return type;
    }
  }
  throw std::invalid_argument(fmt::format(
      "tensor {}: expected F32, F16 or BF16, got {}; save the model in one of these types", in_quotes(name), dtype));
}

std::map<std::string, StoredTensor> parse_safetensors(std::span<const std::byte> file, const std::string& file_name) {
  const std::uint64_t header = header_bytes(file, file_name);
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kLengthBytes, header);
  if (!text.starts_with('{')) {
    throw std::invalid_argument(
        fmt::format("{}: expected a header that begins with '{{', got {}; is it a safetensors file?", file_name,
                    in_quotes(text.substr(0, 8))));
  }
  const json table = parse_json_object(text, file_name);
  const auto data = file.subspan(kLengthBytes + header);

  std::vector<Entry> entries;
  entries.reserve(table.size());
  for (const auto& [name, value] : table.items()) {
    if (name == "__metadata__") {
      check_metadata(value, file_name);
    } else {
      entries.push_back(entry_of(name, value, file_name));
    }
  }
  check_cover(entries, data.size(), file_name);

  std::map<std::string, StoredTensor> tensors;
  for (Entry& entry : entries) {
    tensors.emplace(std::move(entry.name), StoredTensor{.dtype = std::move(entry.dtype),
                                                        .shape = std::move(entry.shape),
                                                        .data = data.subspan(entry.begin, entry.end - entry.begin)});
  }
  return tensors;
}

}  // namespace decodelab
