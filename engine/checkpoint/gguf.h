// Reads GGUF files (versions 2 and 3) without copying: their metadata, and a checked table of where each tensor lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/file_map.h"
#include "engine/checkpoint/gguf_blocks.h"
#include "engine/checkpoint/gguf_metadata.h"

namespace decodelab {

/// Describes one tensor of a file. `data` lies in the file, in blocks of gguf_blocks.h, and the blocks of a row are
/// neighbours. It begins at a multiple of the file's alignment, 32 bytes unless its metadata says otherwise.
struct GgufTensor {
  GgufType type;
  std::vector<std::int64_t> shape;  ///< Row-major, the last dimension the fastest: the reverse of the file's order.
  std::span<const std::byte> data;

  /// Returns the product of the shape; 1 for a scalar.
  std::int64_t elements() const;
};

/// Holds what stands in one file. Texts, arrays and tensors point into the file's bytes.
struct GgufFile {
  std::uint32_t version;
  std::int64_t alignment;  ///< In bytes, a power of two.
  GgufMetadata metadata;
  std::map<std::string, GgufTensor, std::less<>> tensors;

  /// Returns a tensor that dequantize() can read. Throws std::invalid_argument naming the file and the tensor when
  /// there is none of the name, or when it is of another type, which the message names.
  const GgufTensor& tensor(std::string_view name) const;
};

/// Returns the metadata and the tensors of a file, every length checked against `file` (the whole file's bytes, which
/// the result points into).
///
/// Refused with std::invalid_argument naming `file_name`: other files than GGUF of version 2 or 3, big-endian ones, a
/// file that is shorter than any of its lengths says, more keys or tensors than its bytes can hold, malformed metadata
/// (see GgufMetadata), a `general.alignment` that is no power of two, a tensor that appears twice, has more than 4
/// dimensions, an unknown type, rows that are no whole number of blocks or a size that overflows, and tensors whose
/// data is not aligned, ends outside of the file or overlaps with another's. Tensors of no elements are allowed, and so
/// are bytes that belong to no tensor: writers pad. Format: github.com/ggml-org/ggml, docs/gguf.md.
GgufFile parse_gguf(std::span<const std::byte> file, const std::string& file_name);

/// Says whether the file can be read and begins with the letters GGUF.
bool is_gguf(const std::filesystem::path& file);

/// Maps one file and lists what stands in it.
class GgufReader {
 public:
  /// Throws as FileMap and parse_gguf().
  explicit GgufReader(const std::filesystem::path& file);

  /// What it points to is valid as long as the reader, or the one it is moved to, lives.
  const GgufFile& file() const { return file_; }

 private:
  FileMap map_;
  GgufFile file_;
};

}  // namespace decodelab
