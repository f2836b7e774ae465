// Finds the blocks of a row.
#include "engine/checkpoint/stored_blocks.h"

#include <stdexcept>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace decodelab {

StoredBlocks::StoredBlocks(GgufType type, std::int64_t rows, std::int64_t columns, std::span<const std::byte> data,
                           std::int64_t head_dim)
    : type_(type), rows_(rows), columns_(columns), data_(data), head_dim_(head_dim) {
  const GgufEncoding* encoding = find_gguf_encoding(type);
  if (encoding == nullptr || !can_dequantize(type)) {
    throw std::invalid_argument(fmt::format("tensors of type {} cannot be read", gguf_type_name(type)));
  }
  if (columns % encoding->block_elements != 0 ||
      rows * columns / encoding->block_elements * encoding->block_bytes != std::ssize(data)) {
    throw std::invalid_argument(fmt::format("expected {} rows of {} elements in whole blocks of {}, got {} bytes", rows,
                                            columns, encoding->name, data.size()));
  }
  if (head_dim < 0 || head_dim % 2 != 0 || (head_dim > 0 && rows % head_dim != 0)) {
    throw std::invalid_argument(fmt::format("expected whole heads of {} rows each, got {} rows", head_dim, rows));
  }
}

std::span<const std::byte> StoredBlocks::row(std::int64_t index) const {
  std::int64_t source = index;
  if (head_dim_ > 0) {
    const std::int64_t half = head_dim_ / 2;
    const std::int64_t within = index % head_dim_;
    source = index - within + within % half * 2 + within / half;
  }
  const std::size_t bytes = data_.size() / static_cast<std::size_t>(rows_);
  return data_.subspan(static_cast<std::size_t>(source) * bytes, bytes);
}

void StoredBlocks::dequantize_rows(std::int64_t first, std::int64_t last, std::span<float> values) const {
  const auto width = static_cast<std::size_t>(columns_);
  for (std::int64_t index = first; index < last; ++index) {
    dequantize(type_, row(index), values.subspan(static_cast<std::size_t>(index - first) * width, width));
  }
}

void StoredBlocks::release() const {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t into_page = reinterpret_cast<std::uintptr_t>(data_.data()) % page;
  const std::size_t first = (page - into_page) % page;
  if (data_.size() >= first + page) {
    madvise(const_cast<std::byte*>(data_.data()) + first, (data_.size() - first) / page * page, MADV_DONTNEED);
  }
}

}  // namespace decodelab
