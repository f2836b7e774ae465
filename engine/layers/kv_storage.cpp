// One layer of a cache in either layout.
#include "engine/layers/kv_storage.h"

#include <algorithm>
#include <cstring>

#include "engine/layers/step_rows.h"
#include "profiles/range.h"

namespace decodelab {
namespace {

/// The first `rows` rows; of a plane without spare rows the plane itself, which costs no view.
at::Tensor rows_of(const at::Tensor& plane, std::int64_t rows) {
  return plane.size(0) == rows ? plane : plane.narrow(0, 0, rows);
}

/// `plane` with `slots` slots, the new ones zero.
at::Tensor widened(const at::Tensor& plane, std::int64_t slots) {
  at::Tensor wide = at::zeros({plane.size(0), slots, plane.size(2)}, plane.options());
  const std::int64_t kept = std::min(slots, plane.size(1));
  wide.narrow(1, 0, kept).copy_(plane.narrow(1, 0, kept));
  return wide;
}

/// Copies the real tokens of rows of different lengths to their slots of a plane on the CPU.
void copy_tokens(const at::Tensor& plane, const at::Tensor& tokens, const StepRows& rows) {
  const at::Tensor lines = tokens.stride(2) == 1 ? tokens : tokens.contiguous();
  const auto* const from = static_cast<const std::byte*>(lines.const_data_ptr());
  auto* const to = static_cast<std::byte*>(plane.mutable_data_ptr());
  const auto size = static_cast<std::int64_t>(plane.element_size());
  const StepRows::Scatter& scatter = rows.scatter();
  const auto* const source = scatter.source.const_data_ptr<std::int64_t>();
  const auto* const row = scatter.row.const_data_ptr<std::int64_t>();
  const auto* const position = scatter.position.const_data_ptr<std::int64_t>();
  for (std::int64_t token = 0; token < scatter.row.numel(); ++token) {
    const std::int64_t line = rows.packs() ? token * lines.stride(1)
                                           : source[token] / rows.tokens() * lines.stride(0) +
                                                 source[token] % rows.tokens() * lines.stride(1);
    std::memcpy(to + (row[token] * plane.stride(0) + position[token] * plane.stride(1)) * size, from + line * size,
                static_cast<std::size_t>(plane.size(2) * size));
  }
}

}  // namespace

std::int64_t KvStorage::bytes() const {
  std::int64_t total = 0;
  for (const at::Tensor& plane : planes_) {
    total += static_cast<std::int64_t>(plane.nbytes());
  }
  return total;
}

void KvStorage::add_addresses(std::vector<const void*>& all) const {
  for (const at::Tensor& plane : planes_) {
    all.push_back(plane.const_data_ptr());
  }
}

std::vector<at::Tensor> KvStorage::parts_of(const at::Tensor& key_value) const {
  if (layout_ == KvLayout::merged) {
    return {key_value};
  }
  const std::int64_t half = key_value.size(2) / 2;
  return {key_value.narrow(2, 0, half), key_value.narrow(2, half, half)};
}

void KvStorage::reallocate(const at::Tensor& like, std::int64_t slots, std::int64_t kept) {
  std::vector<at::Tensor> larger;
  const std::int64_t width = layout_ == KvLayout::merged ? like.size(2) : like.size(2) / 2;
  for (std::size_t index = 0; index < (layout_ == KvLayout::merged ? 1 : 2); ++index) {
    at::Tensor plane = at::empty({like.size(0), slots, width}, like.options());
    if (kept > 0) {
      const at::Tensor held = planes_[index].narrow(1, 0, kept);
      count_amount(Amount::copied_cache_bytes, static_cast<std::int64_t>(held.numel() * held.element_size()));
      plane.narrow(1, 0, kept).copy_(held);
    }
    if (kept < slots) {
      plane.narrow(1, kept, slots - kept).zero_();
    }
    larger.push_back(std::move(plane));
  }
  planes_ = std::move(larger);
}

void KvStorage::concatenate(const at::Tensor& key_value) {
  std::vector<at::Tensor> parts = parts_of(key_value);
  for (std::size_t index = 0; index < parts.size(); ++index) {
    count_amount(Amount::cache_writes, 1);
    if (planes_.empty()) {
      parts[index] = parts[index].contiguous();
    } else {
      count_amount(Amount::copied_cache_bytes, static_cast<std::int64_t>(planes_[index].nbytes()));
      parts[index] = at::cat({planes_[index], parts[index]}, 1);
    }
  }
  planes_ = std::move(parts);
}

void KvStorage::write(const at::Tensor& key_value, const StepRows& rows) const {
  const std::vector<at::Tensor> parts = parts_of(key_value);
  for (std::size_t index = 0; index < parts.size(); ++index) {
    count_amount(Amount::cache_writes, 1);
    if (rows.uniform()) {
      rows_of(planes_[index], rows.batch_size()).narrow(1, rows.past()[0], rows.tokens()).copy_(parts[index]);
    } else if (planes_[index].is_cpu()) {
      copy_tokens(planes_[index], parts[index], rows);
    } else {
      const StepRows::Scatter& scatter = rows.scatter();
      const at::Tensor tokens = parts[index].flatten(0, 1);
      planes_[index].index_put_({scatter.row, scatter.position},
                                rows.packs() ? tokens : tokens.index_select(0, scatter.source));
    }
  }
}

KvRoom KvStorage::room() const {
  count_amount(Amount::cache_writes, std::ssize(planes_));
  const KeysValues all = view(slots(), rows());
  return {.keys = all.keys, .values = all.values};
}

KeysValues KvStorage::view(std::int64_t keys, std::int64_t rows) const {
  if (layout_ == KvLayout::split) {
    return {.keys = rows_of(planes_[0], rows).narrow(1, 0, keys),
            .values = rows_of(planes_[1], rows).narrow(1, 0, keys)};
  }
  const at::Tensor shown = rows_of(planes_[0], rows).narrow(1, 0, keys);
  const std::int64_t half = shown.size(2) / 2;
  return {.keys = shown.narrow(2, 0, half), .values = shown.narrow(2, half, half)};
}

void KvStorage::shrink(std::int64_t slots) {
  for (at::Tensor& plane : planes_) {
    if (slots < plane.size(1)) {
      plane = plane.narrow(1, 0, slots).contiguous();
    }
  }
}

void KvStorage::keep_rows(std::int64_t rows) {
  for (at::Tensor& plane : planes_) {
    plane = rows_of(plane, rows);
  }
}

void KvStorage::select_rows(const at::Tensor& index, std::int64_t slots) {
  for (at::Tensor& plane : planes_) {
    plane = plane.narrow(1, 0, std::min(slots, plane.size(1))).index_select(0, index);
    count_amount(Amount::copied_cache_bytes, static_cast<std::int64_t>(plane.nbytes()));
  }
}

void KvStorage::append_rows(KvStorage& other, std::int64_t slots) {
  for (std::size_t index = 0; index < planes_.size(); ++index) {
    const auto fit = [slots](const at::Tensor& plane) {
      return plane.size(1) == slots ? plane : widened(plane, slots);
    };
    planes_[index] = at::cat({fit(planes_[index]), fit(other.planes_[index])}, 0);
    count_amount(Amount::copied_cache_bytes, static_cast<std::int64_t>(planes_[index].nbytes()));
    other.planes_[index].reset();
  }
  other.planes_.clear();
}

void KvStorage::put_rows(const std::vector<std::int64_t>& places, KvStorage& other) {
  for (std::size_t index = 0; index < other.planes_.size(); ++index) {
    const at::Tensor& from = other.planes_[index];
    const std::int64_t kept = std::min(slots(), from.size(1));
    for (std::size_t row = 0; row < places.size(); ++row) {
      const at::Tensor held = from.select(0, static_cast<std::int64_t>(row)).narrow(0, 0, kept);
      planes_[index].select(0, places[row]).narrow(0, 0, kept).copy_(held);
      count_amount(Amount::copied_cache_bytes, static_cast<std::int64_t>(held.nbytes()));
    }
  }
  other.planes_.clear();
}

}  // namespace decodelab
