// The rows of a matrix as a GGUF file holds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/checkpoint/gguf_blocks.h"

namespace decodelab {

/// Refers to a matrix in a file's map, in blocks of one type; the blocks of a row are neighbours.
class StoredBlocks {
 public:
  /// Rows of query and key may be stored as [H, k / 2, 2] where they are wanted as [H, 2, k / 2]: then `head_dim` is k,
  /// else 0. Throws std::invalid_argument for a type that dequantize() does not read, for rows that are no whole number
  /// of blocks, and for a head_dim that is odd or does not divide the rows.
  StoredBlocks(GgufType type, std::int64_t rows, std::int64_t columns, std::span<const std::byte> data,
               std::int64_t head_dim);

  GgufType type() const { return type_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  /// Returns the bytes of all rows.
  std::span<const std::byte> data() const { return data_; }
  /// Returns the blocks of a row, in the order in which rows are wanted.
  std::span<const std::byte> row(std::int64_t index) const;
  /// Writes the values of rows [first, last), columns() each.
  void dequantize_rows(std::int64_t first, std::int64_t last, std::span<float> values) const;
  /// Gives the pages of the file that only this matrix lies in back to the system, which reads them again where they
  /// are wanted.
  void release() const;

 private:
  GgufType type_;
  std::int64_t rows_;
  std::int64_t columns_;
  std::span<const std::byte> data_;
  std::int64_t head_dim_;
};

}  // namespace decodelab
