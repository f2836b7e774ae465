// What every cache shares (lengths, rows, layers), and the two ways to make room.
#include "engine/layers/kv_cache.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "base/round_up.h"
#include "engine/kernels/scalar_type.h"
#include "engine/layers/kv_storage.h"
#include "engine/layers/step_rows.h"
#include "profiles/range.h"

namespace decodelab {

KvCache::KvCache(const KvCacheOptions& options)
    : options_(options),
      lengths_(static_cast<std::size_t>(options.batch_size), 0),
      layers_(static_cast<std::size_t>(options.layers), KvStorage(options.layout)) {}
KvCache::~KvCache() = default;

KeysValues KvCache::append(std::int64_t layer, const at::Tensor& key_value, const StepRows& rows) {
  check_room(rows);
  KvStorage& storage = layers_.at(static_cast<std::size_t>(layer));
  const std::int64_t shown = shown_keys(rows);
  store(storage, key_value, rows, shown);
  return written(layer, rows);
}

KvRoom KvCache::room(std::int64_t layer, const StepRows& rows) {
  check_room(rows);
  KvStorage& storage = layers_.at(static_cast<std::size_t>(layer));
  const bool in_place = rows.uniform() || rows.tokens() == 1;
  if (!in_place || !make_room(storage, rows.batch_size(), shown_keys(rows))) {
    return {};
  }
  return storage.room();
}

KeysValues KvCache::written(std::int64_t layer, const StepRows& rows) const {
  const std::int64_t shown = shown_keys(rows);
  count_amount(Amount::padding_keys, shown - rows.keys());
  return layers_.at(static_cast<std::size_t>(layer)).view(shown, rows.batch_size());
}

void KvCache::advance(const StepRows& rows) {
  for (std::size_t row = 0; row < lengths_.size(); ++row) {
    lengths_[row] += rows.added()[row];
  }
}

void KvCache::truncate(std::int64_t row, std::int64_t length) {
  std::int64_t& held = lengths_.at(static_cast<std::size_t>(row));
  if (length < 0 || length > held) {
    throw std::invalid_argument(fmt::format("row {} holds {} tokens and cannot be cut to {}", row, held, length));
  }
  held = length;
}

void KvCache::shrink() {
  const std::int64_t slots = capacity(longest());
  for (KvStorage& storage : layers_) {
    storage.shrink(slots);
  }
}

at::Tensor KvCache::copy_of(std::int64_t layer) const {
  const std::int64_t length = lengths_.front();
  if (length == 0 || std::ranges::any_of(lengths_, [length](std::int64_t other) { return other != length; })) {
    throw std::logic_error("a cache is copied whole: expected rows of one length above 0");
  }
  const KeysValues held = layers_.at(static_cast<std::size_t>(layer)).view(length, options_.batch_size);
  return at::cat({held.keys, held.values}, 2);
}

at::Tensor KvCache::copy_of(std::int64_t layer, std::int64_t row, std::int64_t begin, std::int64_t end) const {
  if (row < 0 || row >= options_.batch_size || begin < 0 || begin >= end ||
      end > lengths_[static_cast<std::size_t>(row)]) {
    throw std::invalid_argument(fmt::format("the cache has no tokens {} to {} of row {} to copy: it has {} rows", begin,
                                            end, row, options_.batch_size));
  }
  const KeysValues held = layers_.at(static_cast<std::size_t>(layer)).view(end, options_.batch_size);
  return at::cat({held.keys.narrow(0, row, 1).narrow(1, begin, end - begin),
                  held.values.narrow(0, row, 1).narrow(1, begin, end - begin)},
                 2);
}

void KvCache::select(const std::vector<std::int64_t>& rows) {
  std::vector<std::int64_t> lengths;
  for (const std::int64_t row : rows) {
    if (row < 0 || row >= options_.batch_size) {
      throw std::invalid_argument(
          fmt::format("there is no row {} to keep: the batch has the rows 0 to {}", row, options_.batch_size - 1));
    }
    lengths.push_back(lengths_[static_cast<std::size_t>(row)]);
  }
  if (rows.empty()) {
    throw std::invalid_argument("a filter keeps at least one row");
  }
  lengths_ = std::move(lengths);
  options_.batch_size = static_cast<std::int64_t>(rows.size());
  const at::Tensor index = at::tensor(rows, at::kLong).to(at::Device(options_.device));
  const std::int64_t slots = capacity(longest());
  for (KvStorage& storage : layers_) {
    storage.select_rows(index, slots);
  }
  options_.spare_rows = 0;
}

void KvCache::welcome(const KvCache& other) {
  const KvCacheOptions& there = other.options_;
  if (there.layers != options_.layers || there.width != options_.width || there.layout != options_.layout ||
      there.dtype != options_.dtype || there.device != options_.device) {
    throw std::invalid_argument("two batches can be put together only if they were made by one engine");
  }
  join(other);
  options_.max_tokens = std::max(options_.max_tokens, there.max_tokens);
}

void KvCache::append(RowPart& part) {
  auto& other = dynamic_cast<KvCache&>(part);
  welcome(other);
  for (KvCache* cache : {this, &other}) {
    if (cache->layers_.front().slots() == 0) {
      cache->allocate(0);  // Rows without a token are rows all the same.
    }
    for (KvStorage& storage : cache->layers_) {
      storage.keep_rows(cache->options_.batch_size);
    }
    cache->options_.spare_rows = 0;
  }
  options_.batch_size += other.options_.batch_size;
  lengths_.insert(lengths_.end(), other.lengths_.begin(), other.lengths_.end());
  const std::int64_t slots = capacity(longest());
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    layers_[layer].append_rows(other.layers_[layer],
                               std::max({slots, layers_[layer].slots(), other.layers_[layer].slots()}));
  }
  other.lengths_.clear();
  other.options_.batch_size = 0;
}

void KvCache::put(const RowsInPlaces& rows, RowPart& part) {
  auto& other = dynamic_cast<KvCache&>(part);
  welcome(other);
  for (std::size_t row = 0; row < rows.places.size(); ++row) {
    lengths_[static_cast<std::size_t>(rows.places[row])] = other.lengths_[row];
  }
  const std::int64_t slots = capacity(longest());
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    if (layers_[layer].slots() < slots) {
      layers_[layer].reallocate(no_slots(writable_rows()), slots, layers_[layer].slots());
    }
    layers_[layer].put_rows(rows.places, other.layers_[layer]);
  }
  other.lengths_.clear();
  other.options_.batch_size = 0;
}

std::int64_t KvCache::shown_keys(const StepRows& rows) const {
  const bool decodes = rows.tokens() == 1 && rows.keys() > 1;
  return decodes ? rounded_up(rows.keys(), options_.key_multiple) : rows.keys();
}

std::int64_t KvCache::bytes() const {
  std::int64_t total = 0;
  for (const KvStorage& storage : layers_) {
    total += storage.bytes();
  }
  return total;
}

void KvCache::join(const KvCache&) {}

bool KvCache::make_room(KvStorage&, std::int64_t, std::int64_t) { return false; }

at::Tensor KvCache::no_slots(std::int64_t rows) const {
  return at::empty({rows, 0, options_.width},
                   at::TensorOptions(scalar_type(options_.dtype)).device(at::Device(options_.device)));
}

std::vector<const void*> KvCache::addresses() const {
  std::vector<const void*> all;
  for (const KvStorage& storage : layers_) {
    storage.add_addresses(all);
  }
  return all;
}

std::int64_t KvCache::writable_rows() const {
  const std::int64_t rows = layers_.empty() ? 0 : layers_.front().rows();
  return std::max(rows, options_.batch_size);
}

void KvCache::allocate(std::int64_t slots) {
  const at::Tensor like = no_slots(options_.batch_size + options_.spare_rows);
  for (KvStorage& storage : layers_) {
    storage.reallocate(like, slots, 0);
  }
}

void KvCache::check_room(const StepRows& rows) const {
  if (rows.keys() > options_.max_tokens) {
    throw std::length_error(fmt::format(
        "a row would hold {} tokens, but its cache was made for at most {}: make the session for more tokens",
        rows.keys(), options_.max_tokens));
  }
}

std::int64_t KvCache::longest() const { return *std::max_element(lengths_.begin(), lengths_.end()); }

namespace {

class ConcatenatedCache final : public KvCache {
 public:
  using KvCache::KvCache;

 protected:
  void store(KvStorage& storage, const at::Tensor& key_value, const StepRows& rows, std::int64_t slots) override {
    if (rows.uniform() && slots == rows.keys() && storage.slots() == rows.past()[0]) {
      storage.concatenate(key_value);
      return;
    }
    storage.reallocate(key_value, slots, std::min(slots, storage.slots()));
    storage.write(key_value, rows);
  }
  std::int64_t capacity(std::int64_t needed) const override { return needed; }
};

class GrowingCache final : public KvCache {
 public:
  GrowingCache(const KvCacheOptions& options, CapacityRule rule, std::int64_t initial)
      : KvCache(options), rule_(std::move(rule)), least_(initial) {
    if (initial > 0) {
      allocate(capacity(initial));
    }
  }

 protected:
  void store(KvStorage& storage, const at::Tensor& key_value, const StepRows& rows, std::int64_t slots) override {
    grow(storage, slots, [&] { return key_value; });
    storage.write(key_value, rows);
  }
  bool make_room(KvStorage& storage, std::int64_t rows, std::int64_t slots) override {
    grow(storage, slots, [&] { return no_slots(rows); });
    return true;
  }
  std::int64_t capacity(std::int64_t needed) const override {
    return rounded_up(std::max(needed, std::max(least_, rule_(needed))), options().key_multiple);
  }
  void join(const KvCache& other) override {
    least_ = std::max(least_, dynamic_cast<const GrowingCache&>(other).least_);
  }

 private:
  /// Makes room in a layer that has less; `like` returns a tensor of as many rows.
  void grow(KvStorage& storage, std::int64_t slots, const std::function<at::Tensor()>& like) const {
    if (slots > storage.slots()) {
      storage.reallocate(like(), capacity(slots), storage.slots());
    }
  }

  CapacityRule rule_;
  std::int64_t least_;
};

}  // namespace

std::unique_ptr<KvCache> make_concatenated_cache(const KvCacheOptions& options) {
  return std::make_unique<ConcatenatedCache>(options);
}

std::unique_ptr<KvCache> make_growing_cache(const KvCacheOptions& options, CapacityRule rule) {
  return std::make_unique<GrowingCache>(options, std::move(rule), 0);
}

std::unique_ptr<KvCache> make_preallocated_cache(const KvCacheOptions& options, std::int64_t slots) {
  const auto just_enough = [](std::int64_t needed) { return needed; };
  return std::make_unique<GrowingCache>(options, just_enough, slots);
}

}  // namespace decodelab
