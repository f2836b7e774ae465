// Writes a safetensors file piece by piece, for checkpoints that do not fit into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/safetensors.h"

namespace decodelab {

/// Declares the name, type and shape of a tensor whose data comes later.
struct TensorToDeclare {
  std::string name;
  ElementType type;
  std::vector<std::int64_t> shape;
};

/// Writes to a temporary file next to `path` and renames it on commit(); without commit() the destructor removes the
/// temporary file.
///
/// The header is padded so that the data begins at a multiple of 64 bytes. Tensors lie in the declared order, 4-byte
/// types before 2-byte ones, so that every element is aligned in a memory map. `__metadata__` is {"format": "pt"},
/// which transformers asks for. The write functions may be called from several threads. All throw std::runtime_error
/// with the file's name when the system refuses (disk full, no permission).
class SafetensorsWriter {
 public:
  /// Creates the temporary file at its full size. Throws std::invalid_argument for a name that appears twice or is not
  /// UTF-8 or is `__metadata__`, for a negative dimension and for sizes that overflow.
  SafetensorsWriter(const std::filesystem::path& path, std::span<const TensorToDeclare> tensors);
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  /// Writes a whole tensor. Throws std::invalid_argument when it was not declared, or not with this many bytes.
  void write(std::string_view name, std::span<const std::byte> data);
  /// Writes a part of a tensor that begins at `offset_bytes` of it; each byte is written once, in any order.
  /// Throws std::invalid_argument when the part lies outside of the tensor or the tensor would have more bytes than
  /// were declared.
  void write_part(std::string_view name, std::int64_t offset_bytes, std::span<const std::byte> data);
  /// Flushes to the disk and renames. Throws std::invalid_argument naming a tensor that is not complete.
  void commit();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace decodelab
