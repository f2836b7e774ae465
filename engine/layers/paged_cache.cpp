// Keys and values in pages that rows share.
#include <algorithm>
#include <cstring>
#include <memory>
#include <unordered_set>
#include <utility>

#include "base/round_up.h"
#include "base/select_rows.h"
#include "engine/kernels/scalar_type.h"
#include "engine/layers/kv_cache.h"
#include "engine/layers/kv_pages.h"
#include "engine/layers/shared_pages.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/step_tensors.h"
#include "engine/tensor.h"
#include "profiles/range.h"

namespace decodelab {
namespace {

/// A page is [2, kPageTokens, W / 2]: keys, then values. A row that appends to a page that others hold too copies it
/// first.
class PagedCache final : public KvCache, public PageSharing {
 public:
  explicit PagedCache(const KvCacheOptions& options)
      : KvCache(options),
        half_(options.width / 2),
        half_bytes_(half_ * static_cast<std::int64_t>(element_bytes(options.dtype))),
        layers_(static_cast<std::size_t>(options.layers)) {
    for (Layer& layer : layers_) {
      layer.rows.resize(static_cast<std::size_t>(options.batch_size));
    }
  }

  KeysValues append(std::int64_t layer, const at::Tensor& key_value, const StepRows& rows, bool reads_pages) override {
    check_room(rows);
    Layer& here = layers_.at(static_cast<std::size_t>(layer));
    write(here, key_value.stride(2) == 1 ? key_value : key_value.contiguous(), rows);
    count_amount(Amount::cache_writes, 2);
    if (reads_pages) {
      point(here);
      return {.keys = {}, .values = {}, .pages = &here.pages};
    }
    const bool first = std::ranges::all_of(rows.past(), [](std::int64_t held) { return held == 0; });
    if (!first) {
      return gathered(here, rows);
    }
    const at::Tensor padded = rows.padded(key_value);
    return {.keys = padded.narrow(2, 0, half_), .values = padded.narrow(2, half_, half_)};
  }

  KvRoom room(std::int64_t, const StepRows& rows) override {
    check_room(rows);
    return {};
  }
  KeysValues written(std::int64_t, const StepRows&) const override { return {}; }

  void shrink() override {
    for (Layer& layer : layers_) {
      for (std::size_t row = 0; row < layer.rows.size(); ++row) {
        layer.rows[row].resize(std::min(layer.rows[row].size(), pages_of(lengths_[row])));
      }
    }
  }

  /// Copies no page.
  void select(const std::vector<std::int64_t>& rows) override {
    select_lengths(rows);
    for (Layer& layer : layers_) {
      layer.rows = select_rows(layer.rows, rows);
    }
  }

  void append(RowPart& part) override {
    auto& other = dynamic_cast<PagedCache&>(part);
    welcome(other);
    append_lengths(other);
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
      std::ranges::move(other.layers_[layer].rows, std::back_inserter(layers_[layer].rows));
      other.layers_[layer].rows.clear();
    }
  }

  SharedPages share(std::int64_t row, std::int64_t begin, std::int64_t end) const override {
    SharedPages shared{.begin = begin, .end = end};
    for (const Layer& layer : layers_) {
      const Row& pages = layer.rows.at(static_cast<std::size_t>(row));
      shared.layers.emplace_back(pages.begin() + begin / kPageTokens,
                                 pages.begin() + static_cast<std::ptrdiff_t>(pages_of(end)));
    }
    return shared;
  }

  /// A page in which one piece ends and the next begins is that of the next, whose sequence has the tokens of both.
  std::int64_t adopt(std::int64_t row, const std::vector<const SharedPages*>& pieces, std::int64_t tokens) override {
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
      Row& pages = layers_[layer].rows.at(static_cast<std::size_t>(row));
      pages.resize(pages_of(tokens));
      for (const SharedPages* piece : pieces) {
        std::ranges::copy(piece->layers.at(layer), pages.begin() + piece->begin / kPageTokens);
      }
    }
    return static_cast<std::int64_t>(pages_of(tokens) * layers_.size());
  }

  std::int64_t bytes() const override {
    std::unordered_set<const void*> distinct;
    for (const Layer& layer : layers_) {
      for (const Row& row : layer.rows) {
        for (const at::Tensor& page : row) {
          distinct.insert(page.const_data_ptr());
        }
      }
    }
    return std::ssize(distinct) * 2 * kPageTokens * half_bytes_;
  }

  std::vector<const void*> addresses() const override {
    std::vector<const void*> all;
    for (const Layer& layer : layers_) {
      for (const Row& row : layer.rows) {
        std::ranges::transform(row, std::back_inserter(all),
                               [](const at::Tensor& page) { return page.const_data_ptr(); });
      }
    }
    return all;
  }

 protected:
  std::int64_t capacity(std::int64_t needed) const override { return rounded_up(needed, kPageTokens); }

  at::Tensor copy_rows(std::int64_t layer, std::int64_t first_row, std::int64_t rows, std::int64_t begin,
                       std::int64_t end) const override {
    at::Tensor copies = new_tensor({rows, end - begin, options_.width});
    for (std::int64_t row = 0; row < rows; ++row) {
      const Row& pages = layers_.at(static_cast<std::size_t>(layer)).rows[static_cast<std::size_t>(first_row + row)];
      const at::Tensor of_row = copies.select(0, row);
      copy_tokens(pages, begin, end, of_row.narrow(1, 0, half_), of_row.narrow(1, half_, half_));
    }
    return copies;
  }

 private:
  using Row = std::vector<at::Tensor>;  ///< Its pages, the first tokens first.
  struct Layer {
    std::vector<Row> rows;
    KvPages pages;  ///< Where those lie, as the last step that read them was told.
  };

  static std::size_t pages_of(std::int64_t tokens) { return static_cast<std::size_t>(divided_up(tokens, kPageTokens)); }

  at::Tensor new_tensor(at::IntArrayRef sizes) const {
    return at::zeros(sizes, at::TensorOptions(scalar_type(options_.dtype)).device(at::Device(options_.device)));
  }

  /// Returns a page of the row that nobody else holds, from which tokens behind those that are held may be written.
  at::Tensor& own_page(Row& row, std::int64_t index) const {
    if (index >= std::ssize(row)) {
      row.push_back(new_tensor({2, kPageTokens, half_}));
    }
    at::Tensor& page = row[static_cast<std::size_t>(index)];
    if (page.use_count() > 1) {
      page = page.clone();
      count_amount(Amount::copied_cache_bytes, static_cast<std::int64_t>(page.nbytes()));
    }
    return page;
  }

  /// Writes the real tokens of each row.
  void write(Layer& layer, const at::Tensor& key_value, const StepRows& rows) const {
    const auto* const from = static_cast<const std::byte*>(key_value.const_data_ptr());
    const std::int64_t element = half_bytes_ / half_;
    const std::vector<std::int64_t> first = rows.first_token_index();
    const std::int64_t stride = key_value.stride(1);
    for (std::int64_t row = 0; row < rows.batch_size(); ++row) {
      const auto place = static_cast<std::size_t>(row);
      const std::int64_t past = rows.past()[place];
      for (std::int64_t token = 0; token < rows.added()[place];) {
        const std::int64_t at = past + token;
        const std::int64_t slot = at % kPageTokens;
        const std::int64_t count = std::min(rows.added()[place] - token, kPageTokens - slot);
        auto* const page = static_cast<std::byte*>(own_page(layer.rows[place], at / kPageTokens).mutable_data_ptr());
        for (std::int64_t next = 0; next < count; ++next) {
          const std::byte* const tokens =
              from +
              ((rows.packs() ? first[place] * stride : row * key_value.stride(0)) + (token + next) * stride) * element;
          std::memcpy(page + (slot + next) * half_bytes_, tokens, static_cast<std::size_t>(half_bytes_));
          std::memcpy(page + (kPageTokens + slot + next) * half_bytes_, tokens + half_bytes_,
                      static_cast<std::size_t>(half_bytes_));
        }
        token += count;
      }
    }
  }

  /// Writes down where the pages of all rows lie.
  static void point(Layer& layer) {
    KvPages& pages = layer.pages;
    const auto most = std::ranges::max_element(layer.rows, {}, [](const Row& row) { return row.size(); });
    pages.of_a_row = std::ssize(*most);
    pages.at.assign(layer.rows.size() * most->size(), nullptr);
    for (std::size_t row = 0; row < layer.rows.size(); ++row) {
      for (std::size_t page = 0; page < layer.rows[row].size(); ++page) {
        pages.at[row * most->size() + page] = layer.rows[row][page].const_data_ptr();
      }
    }
  }

  /// Copies tokens of a row, [end - begin, W / 2] each.
  static void copy_tokens(const Row& row, std::int64_t begin, std::int64_t end, const at::Tensor& keys,
                          const at::Tensor& values) {
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t slot = at % kPageTokens;
      const std::int64_t count = std::min(end - at, kPageTokens - slot);
      const at::Tensor& page = row[static_cast<std::size_t>(at / kPageTokens)];
      keys.narrow(0, at - begin, count).copy_(page.select(0, 0).narrow(0, slot, count));
      values.narrow(0, at - begin, count).copy_(page.select(0, 1).narrow(0, slot, count));
      at += count;
    }
  }

  /// Returns all keys and values beside each other, for attention that reads no pages.
  KeysValues gathered(const Layer& layer, const StepRows& rows) const {
    const std::int64_t shown = shown_keys(rows);
    KeysValues all{.keys = new_tensor({rows.batch_size(), shown, half_}),
                   .values = new_tensor({rows.batch_size(), shown, half_})};
    for (std::int64_t row = 0; row < rows.batch_size(); ++row) {
      const auto place = static_cast<std::size_t>(row);
      copy_tokens(layer.rows[place], 0, rows.past()[place] + rows.added()[place], all.keys.select(0, row),
                  all.values.select(0, row));
    }
    count_amount(Amount::copied_cache_bytes, static_cast<std::int64_t>(all.keys.nbytes() + all.values.nbytes()));
    return all;
  }

  std::int64_t half_;        ///< Elements of a token's keys.
  std::int64_t half_bytes_;  ///< Their bytes.
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<KvCache> make_paged_cache(const KvCacheOptions& options) {
  return std::make_unique<PagedCache>(options);
}

}  // namespace decodelab
