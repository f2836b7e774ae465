// A cache of whole planes, and its two ways to make room.
#include "engine/layers/plane_cache.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "base/round_up.h"
#include "engine/kernels/scalar_type.h"
#include "engine/layers/kv_storage.h"
#include "engine/layers/step_rows.h"
#include "profiles/range.h"

namespace decodelab {

PlaneCache::PlaneCache(const KvCacheOptions& options)
    : KvCache(options), layers_(static_cast<std::size_t>(options.layers), KvStorage(options.layout)) {}

KeysValues PlaneCache::append(std::int64_t layer, const at::Tensor& key_value, const StepRows& rows, bool) {
  check_room(rows);
  KvStorage& storage = layers_.at(static_cast<std::size_t>(layer));
  const std::int64_t shown = shown_keys(rows);
  store(storage, key_value, rows, shown);
  return written(layer, rows);
}

KvRoom PlaneCache::room(std::int64_t layer, const StepRows& rows) {
  check_room(rows);
  KvStorage& storage = layers_.at(static_cast<std::size_t>(layer));
  const bool in_place = rows.uniform() || rows.tokens() == 1;
  if (!in_place || !make_room(storage, rows.batch_size(), shown_keys(rows))) {
    return {};
  }
  return storage.room();
}

KeysValues PlaneCache::written(std::int64_t layer, const StepRows& rows) const {
  const std::int64_t shown = shown_keys(rows);
  count_amount(Amount::padding_keys, shown - rows.keys());
  return layers_.at(static_cast<std::size_t>(layer)).view(shown, rows.batch_size());
}

void PlaneCache::shrink() {
  const std::int64_t slots = capacity(longest());
  for (KvStorage& storage : layers_) {
    storage.shrink(slots);
  }
}

at::Tensor PlaneCache::copy_rows(std::int64_t layer, std::int64_t first_row, std::int64_t rows, std::int64_t begin,
                                 std::int64_t end) const {
  const KeysValues held = layers_.at(static_cast<std::size_t>(layer)).view(end, options_.batch_size);
  return at::cat({held.keys.narrow(0, first_row, rows).narrow(1, begin, end - begin),
                  held.values.narrow(0, first_row, rows).narrow(1, begin, end - begin)},
                 2);
}

void PlaneCache::select(const std::vector<std::int64_t>& rows) {
  select_lengths(rows);
  const at::Tensor index = at::tensor(rows, at::kLong).to(at::Device(options_.device));
  const std::int64_t slots = capacity(longest());
  for (KvStorage& storage : layers_) {
    storage.select_rows(index, slots);
  }
  options_.spare_rows = 0;
}

void PlaneCache::append(RowPart& part) {
  auto& other = dynamic_cast<PlaneCache&>(part);
  welcome(other);
  join(other);
  for (PlaneCache* cache : {this, &other}) {
    if (cache->layers_.front().slots() == 0) {
      cache->allocate(0);  // Rows without a token are rows all the same.
    }
    for (KvStorage& storage : cache->layers_) {
      storage.keep_rows(cache->options_.batch_size);
    }
    cache->options_.spare_rows = 0;
  }
  append_lengths(other);
  const std::int64_t slots = capacity(longest());
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    layers_[layer].append_rows(other.layers_[layer],
                               std::max({slots, layers_[layer].slots(), other.layers_[layer].slots()}));
  }
}

void PlaneCache::put(const RowsInPlaces& rows, RowPart& part) {
  auto& other = dynamic_cast<PlaneCache&>(part);
  welcome(other);
  join(other);
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

std::int64_t PlaneCache::bytes() const {
  std::int64_t total = 0;
  for (const KvStorage& storage : layers_) {
    total += storage.bytes();
  }
  return total;
}

void PlaneCache::join(const PlaneCache&) {}

bool PlaneCache::make_room(KvStorage&, std::int64_t, std::int64_t) { return false; }

at::Tensor PlaneCache::no_slots(std::int64_t rows) const {
  return at::empty({rows, 0, options_.width},
                   at::TensorOptions(scalar_type(options_.dtype)).device(at::Device(options_.device)));
}

at::Tensor PlaneCache::of_as_many_rows(const at::Tensor& key_value, const StepRows& rows) const {
  return rows.packs() ? no_slots(rows.batch_size()) : key_value;
}

std::vector<const void*> PlaneCache::addresses() const {
  std::vector<const void*> all;
  for (const KvStorage& storage : layers_) {
    storage.add_addresses(all);
  }
  return all;
}

std::int64_t PlaneCache::writable_rows() const {
  const std::int64_t rows = layers_.empty() ? 0 : layers_.front().rows();
  return std::max(rows, options_.batch_size);
}

void PlaneCache::allocate(std::int64_t slots) {
  const at::Tensor like = no_slots(options_.batch_size + options_.spare_rows);
  for (KvStorage& storage : layers_) {
    storage.reallocate(like, slots, 0);
  }
}

namespace {

class ConcatenatedCache final : public PlaneCache {
 public:
  using PlaneCache::PlaneCache;

 protected:
  void store(KvStorage& storage, const at::Tensor& key_value, const StepRows& rows, std::int64_t slots) override {
    if (rows.uniform() && slots == rows.keys() && storage.slots() == rows.past()[0]) {
      storage.concatenate(key_value);
      return;
    }
    storage.reallocate(of_as_many_rows(key_value, rows), slots, std::min(slots, storage.slots()));
    storage.write(key_value, rows);
  }
  std::int64_t capacity(std::int64_t needed) const override { return needed; }
};

class GrowingCache final : public PlaneCache {
 public:
  GrowingCache(const KvCacheOptions& options, CapacityRule rule, std::int64_t initial)
      : PlaneCache(options), rule_(std::move(rule)), least_(initial) {
    if (initial > 0) {
      allocate(capacity(initial));
    }
  }

 protected:
  void store(KvStorage& storage, const at::Tensor& key_value, const StepRows& rows, std::int64_t slots) override {
    grow(storage, slots, [&] { return of_as_many_rows(key_value, rows); });
    storage.write(key_value, rows);
  }
  bool make_room(KvStorage& storage, std::int64_t rows, std::int64_t slots) override {
    grow(storage, slots, [&] { return no_slots(rows); });
    return true;
  }
  std::int64_t capacity(std::int64_t needed) const override {
    return rounded_up(std::max(needed, std::max(least_, rule_(needed))), options().key_multiple);
  }
  void join(const PlaneCache& other) override {
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
