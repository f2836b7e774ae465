// The reference cache, and what every cache shares: lengths and the writing of new tokens.
#include "engine/layers/kv_cache.h"

#include "engine/layers/keys_values.h"
#include "engine/layers/step_rows.h"
#include "engine/scalar_type.h"
#include "profiles/range.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace decodelab {

KvCache::KvCache(const KvCacheOptions& options)
    : options_(options), lengths_(static_cast<std::size_t>(options.batch_size), 0) {}

void KvCache::advance(const StepRows& rows) {
  for (std::size_t row = 0; row < lengths_.size(); ++row) {
    lengths_[row] += rows.added()[row];
  }
}

void KvCache::check_append(const StepRows& rows) const {
  if (rows.keys() > options_.max_tokens) {
    throw std::length_error(fmt::format(
        "a row would hold {} tokens, but its cache was made for at most {}: make the session for more tokens",
        rows.keys(), options_.max_tokens));
  }
}

void KvCache::set_length(std::int64_t row, std::int64_t length) {
  std::int64_t& held = lengths_.at(static_cast<std::size_t>(row));
  if (length < 0 || length > held) {
    throw std::invalid_argument(fmt::format("row {} holds {} tokens and cannot be cut to {}", row, held, length));
  }
  held = length;
}

namespace {

/// One layer's storage, [B, slots, W / 2] each; undefined until something was appended.
struct Planes {
  at::Tensor keys;
  at::Tensor values;

  std::int64_t slots() const { return keys.defined() ? keys.size(1) : 0; }
  std::int64_t bytes() const { return keys.defined() ? static_cast<std::int64_t>(keys.nbytes() + values.nbytes()) : 0; }
  void zero_tail(std::int64_t row, std::int64_t length) {
    if (length < slots()) {
      keys.select(0, row).narrow(0, length, slots() - length).zero_();
      values.select(0, row).narrow(0, length, slots() - length).zero_();
    }
  }
};

at::Tensor keys_of(const at::Tensor& key_value) { return key_value.narrow(2, 0, key_value.size(2) / 2); }
at::Tensor values_of(const at::Tensor& key_value) {
  return key_value.narrow(2, key_value.size(2) / 2, key_value.size(2) / 2);
}

/// Writes the step's real tokens into `storage`, which has slots for them.
void write_tokens(const at::Tensor& storage, const at::Tensor& tokens, const StepRows& rows) {
  if (rows.uniform()) {
    storage.narrow(1, rows.past()[0], rows.tokens()).copy_(tokens);
    return;
  }
  const StepRows::Scatter& scatter = rows.scatter();
  storage.index_put_({scatter.row, scatter.position}, tokens.flatten(0, 1).index_select(0, scatter.source));
}

class ConcatenatedCache final : public KvCache {
 public:
  explicit ConcatenatedCache(const KvCacheOptions& options)
      : KvCache(options), planes_(static_cast<std::size_t>(options.layers)) {}

  KeysValues append(std::int64_t layer, const at::Tensor& key_value, const StepRows& rows) override {
    check_append(rows);
    Planes& planes = planes_.at(static_cast<std::size_t>(layer));
    planes.keys = concatenate(planes.keys, keys_of(key_value), rows);
    planes.values = concatenate(planes.values, values_of(key_value), rows);
    return {.keys = planes.keys, .values = planes.values};
  }

  void truncate(std::int64_t row, std::int64_t length) override {
    set_length(row, length);
    const std::int64_t longest = *std::max_element(lengths().begin(), lengths().end());
    for (Planes& planes : planes_) {
      planes.zero_tail(row, length);
      if (longest < planes.slots()) {
        planes.keys = planes.keys.narrow(1, 0, longest);
        planes.values = planes.values.narrow(1, 0, longest);
      }
    }
  }

  std::int64_t bytes() const override {
    std::int64_t total = 0;
    for (const Planes& planes : planes_) {
      total += planes.bytes();
    }
    return total;
  }

 private:
  static at::Tensor concatenate(const at::Tensor& held, const at::Tensor& tokens, const StepRows& rows) {
    count_amount(Amount::copied_cache_bytes, held.defined() ? static_cast<std::int64_t>(held.nbytes()) : 0);
    if (rows.uniform()) {
      return held.defined() ? at::cat({held, tokens}, 1) : tokens.contiguous();
    }
    at::Tensor joined = at::zeros({tokens.size(0), rows.keys(), tokens.size(2)}, tokens.options());
    if (held.defined()) {
      joined.narrow(1, 0, held.size(1)).copy_(held);
    }
    write_tokens(joined, tokens, rows);
    return joined;
  }

  std::vector<Planes> planes_;
};

/// A decode step is given so many keys too many, which its mask hides, rather than a part of the storage: libtorch's batched products
/// in 16-bit types copy whatever is not contiguous, and with it went all that a growing cache saves (seen on a CPU: 148 MB in 8 steps
/// of 8 rows of 512 tokens).
constexpr std::int64_t kSpareKeys = 16;

class GrowingCache final : public KvCache {
 public:
  GrowingCache(const KvCacheOptions& options, CapacityRule rule, std::int64_t initial)
      : KvCache(options), rule_(std::move(rule)), planes_(static_cast<std::size_t>(options.layers)) {
    if (initial > 0) {
      const auto tensor_options = at::TensorOptions(scalar_type(options.dtype)).device(at::Device(options.device));
      for (Planes& planes : planes_) {
        planes.keys = at::zeros({options.batch_size, initial, options.width / 2}, tensor_options);
        planes.values = at::zeros_like(planes.keys);
      }
    }
  }

  KeysValues append(std::int64_t layer, const at::Tensor& key_value, const StepRows& rows) override {
    check_append(rows);
    Planes& planes = planes_.at(static_cast<std::size_t>(layer));
    const std::int64_t held = planes.slots();
    if (rows.keys() > held) {
      const std::int64_t slots = std::max(rows.keys(), rule_(rows.keys(), held));
      planes.keys = grown(planes.keys, keys_of(key_value), slots);
      planes.values = grown(planes.values, values_of(key_value), slots);
    }
    write_tokens(planes.keys, keys_of(key_value), rows);
    write_tokens(planes.values, values_of(key_value), rows);
    const bool decodes = rows.tokens() == 1 && rows.keys() > 1;
    if (decodes && planes.slots() - rows.keys() <= kSpareKeys) {
      return {.keys = planes.keys, .values = planes.values};
    }
    return {.keys = planes.keys.narrow(1, 0, rows.keys()), .values = planes.values.narrow(1, 0, rows.keys())};
  }

  void truncate(std::int64_t row, std::int64_t length) override {
    set_length(row, length);
    for (Planes& planes : planes_) {
      planes.zero_tail(row, length);
    }
  }

  std::int64_t bytes() const override {
    std::int64_t total = 0;
    for (const Planes& planes : planes_) {
      total += planes.bytes();
    }
    return total;
  }

 private:
  /// The tail is zeroed, because attention may multiply it by zero weights and 0 * NaN is NaN.
  static at::Tensor grown(const at::Tensor& held, const at::Tensor& like, std::int64_t slots) {
    const std::int64_t kept = held.defined() ? held.size(1) : 0;
    at::Tensor larger = at::empty({like.size(0), slots, like.size(2)}, like.options());
    if (kept > 0) {
      count_amount(Amount::copied_cache_bytes, static_cast<std::int64_t>(held.nbytes()));
      larger.narrow(1, 0, kept).copy_(held);
    }
    larger.narrow(1, kept, slots - kept).zero_();
    return larger;
  }

  CapacityRule rule_;
  std::vector<Planes> planes_;
};

}  // namespace

std::unique_ptr<KvCache> make_concatenated_cache(const KvCacheOptions& options) {
  return std::make_unique<ConcatenatedCache>(options);
}

std::unique_ptr<KvCache> make_growing_cache(const KvCacheOptions& options, CapacityRule rule, std::int64_t initial) {
  return std::make_unique<GrowingCache>(options, std::move(rule), initial);
}

}  // namespace decodelab
