// Applies the rules of rows to their logits.
#include "engine/sampling/row_masks.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/select_rows.h"

namespace decodelab {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

/// Returns 0 for what is allowed, else -infinity: [V] fp32 on the host.
at::Tensor as_tensor(const MaskBits& bits) {
  at::Tensor mask = at::empty({bits.width()}, at::kFloat);
  auto* values = mask.mutable_data_ptr<float>();
  for (std::int64_t id = 0; id < bits.width(); ++id) {
    values[id] = bits.allows(id) ? 0.0F : kForbidden;
  }
  return mask;
}

/// Writes -infinity over what is forbidden; words that allow all are passed over.
template <typename Element>
void write_forbidden(const MaskBits& bits, Element* logits) {
  const auto forbidden = static_cast<Element>(kForbidden);
  for (std::size_t word = 0; word < bits.words().size(); ++word) {
    const std::uint32_t allowed = bits.words()[word];
    const std::int64_t begin = static_cast<std::int64_t>(word) * 32;
    const std::int64_t end = std::min<std::int64_t>(begin + 32, bits.width());
    if (allowed == 0) {
      std::fill(logits + begin, logits + end, forbidden);
    } else if (allowed != ~std::uint32_t{0}) {
      for (std::int64_t id = begin; id < end; ++id) {
        logits[id] = (allowed >> (id - begin) & 1) != 0 ? logits[id] : forbidden;
      }
    }
  }
}

void forbid_on_host(const MaskBits& bits, const at::Tensor& row) {
  switch (row.scalar_type()) {
    case at::kBFloat16: write_forbidden(bits, row.mutable_data_ptr<at::BFloat16>()); break;
    case at::kHalf: write_forbidden(bits, row.mutable_data_ptr<at::Half>()); break;
    default: write_forbidden(bits, row.mutable_data_ptr<float>()); break;
  }
}

}  // namespace

RowMasks::RowMasks(const std::vector<TokenRules>& rules, PatternMasks& masks, std::int64_t vocabulary_size)
    : bits_(vocabulary_size) {
  static const auto without_bytes =
      std::make_shared<const MaskVocabulary>(std::vector<std::string>(), std::vector<std::int64_t>());
  for (const TokenRules& row : rules) {
    check_rules(row, vocabulary_size);
    rows_.emplace_back(row, row.regex.empty() ? nullptr : masks.of(row.regex),
                       masks.vocabulary() == nullptr ? without_bytes : masks.vocabulary());
  }
}

RowMasks::RowMasks(std::int64_t batch_size, std::int64_t vocabulary_size)
    : rows_(static_cast<std::size_t>(batch_size)), bits_(vocabulary_size) {}

at::Tensor RowMasks::apply(const at::Tensor& logits, const std::vector<std::int64_t>& rows) {
  at::Tensor masked = logits.clone(at::MemoryFormat::Contiguous);
  exhausted_.assign(rows.size(), false);
  for (std::size_t line = 0; line < rows.size(); ++line) {
    RowRules& row = rows_[static_cast<std::size_t>(rows[line])];
    if (!row.any()) {
      continue;
    }
    row.find_allowed(bits_);
    exhausted_[line] = bits_.none();
    if (exhausted_[line]) {
      continue;
    }
    const at::Tensor of_row = masked.select(0, static_cast<std::int64_t>(line));
    const TokenMask* const mask = row.mask();
    if (!of_row.is_cpu() || (mask != nullptr && mask->adds_tensor())) {
      of_row.copy_(of_row.to(at::kFloat) + as_tensor(bits_).to(of_row.device()));
    } else {
      forbid_on_host(bits_, of_row);
    }
  }
  return masked;
}

void RowMasks::take(std::span<const std::int64_t> token_ids, std::span<const std::int64_t> positions,
                    const std::vector<std::int64_t>& rows) {
  for (std::size_t index = 0; index < rows.size(); ++index) {
    RowRules& row = rows_[static_cast<std::size_t>(rows[index])];
    if (row.any()) {
      row.take(token_ids[index], positions[index]);
    }
  }
}

void RowMasks::begin() {
  for (std::int64_t row = 0; row < std::ssize(rows_); ++row) {
    truncate(row, 0);
  }
}

void RowMasks::select(const std::vector<std::int64_t>& rows) { rows_ = select_rows(rows_, rows); }

void RowMasks::append(RowPart& other) {
  std::ranges::move(dynamic_cast<RowMasks&>(other).rows_, std::back_inserter(rows_));
}

void RowMasks::truncate(std::int64_t row, std::int64_t length) {
  rows_[static_cast<std::size_t>(row)].truncate(length);
}

}  // namespace decodelab
