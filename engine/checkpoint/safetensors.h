// Reads safetensors files without copying: a memory map and a checked table of where each tensor lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/stored_blocks.h"
#include "engine/kernels/element_type.h"

namespace decodelab {

/// Returns F32, F16 or BF16: the type's name in a safetensors file.
std::string_view safetensors_name(ElementType type);

/// Bytes of the header's length, with which a file begins.
inline constexpr std::uint64_t kLengthBytes = 8;

/// Describes one tensor of a file. Types other than ElementType's are listed, and refused when a weight asks for them.
/// `data` lies in the map, little-endian and row-major, and is valid as long as the reader lives. It is aligned to its
/// element only if the writer aligned it, as the official one and ours do.
struct StoredTensor {
  std::string dtype;  ///< As the file names it: F32, F16, BF16, I64, ...
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;
  /// How the file holds a tensor that is not stored as it is wanted, such as a GGUF file's blocks; empty where it is.
  std::optional<StoredBlocks> blocks{};

  /// Returns the element type. Throws std::invalid_argument naming `name` when the dtype is none of F32, F16, BF16.
  ElementType element_type(std::string_view name) const;
};

/// Returns the table in the header of one safetensors file, every entry checked against `file` (the whole file's
/// bytes).
///
/// Refused with std::invalid_argument naming `file_name`: a file shorter than its header says, a header over 100 MB or
/// that is no JSON object, a tensor without dtype, shape or data_offsets, a negative or overflowing dimension, offsets
/// outside of the file, reversed or overlapping, data bytes that belong to no tensor, a byte count that is not shape x
/// element size, an unknown dtype name, a key that appears twice. Tensors of no elements are allowed. `__metadata__` is
/// not read. The data of the result points into `file`. Format: github.com/huggingface/safetensors (README, "Format").
std::map<std::string, StoredTensor> parse_safetensors(std::span<const std::byte> file, const std::string& file_name);

/// Returns the file of each tensor, from the text of a model.safetensors.index.json; `file_name` is only for messages.
///
/// Throws std::invalid_argument naming the file for text that is no JSON object with a `weight_map`, and for a shard
/// name with '/' or '..'.
std::map<std::string, std::string> parse_safetensors_index(std::string_view text, const std::string& file_name);

/// Maps the files of a checkpoint directory and lists their tensors: `model.safetensors`, or the shards that
/// `model.safetensors.index.json` names.
class SafetensorsReader {
 public:
  /// Throws std::invalid_argument when neither is there, a shard is missing, a tensor is in two shards, or a file is
  /// malformed.
  explicit SafetensorsReader(const std::filesystem::path& directory);
  ~SafetensorsReader();
  SafetensorsReader(SafetensorsReader&&) noexcept;
  SafetensorsReader& operator=(SafetensorsReader&&) noexcept;

  const std::map<std::string, StoredTensor>& tensors() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Describes one tensor to write; `data` is borrowed.
struct TensorToWrite {
  std::string name;
  ElementType type;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;
};

/// Writes a safetensors file through a temporary neighbour and a rename, so that a reader never sees half of one.
/// Copies nothing. Throws as SafetensorsWriter (engine/checkpoint/safetensors_writer.h), which takes data in pieces.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors);

}  // namespace decodelab
