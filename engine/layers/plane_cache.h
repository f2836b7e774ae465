// A cache whose layers are one or two tensors of all rows.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/layers/kv_cache.h"
#include "engine/layers/kv_storage.h"

namespace decodelab {

/// All rows of a layer have the same number of slots. When it gets more is what a growth rule says.
class PlaneCache : public KvCache {
 public:
  explicit PlaneCache(const KvCacheOptions& options);

  KeysValues append(std::int64_t layer, const at::Tensor& key_value, const StepRows& rows,
                    bool reads_pages = false) override;
  KvRoom room(std::int64_t layer, const StepRows& rows) override;
  KeysValues written(std::int64_t layer, const StepRows& rows) const override;
  /// Copies what is kept.
  void shrink() override;
  /// Copies what is kept, layer by layer.
  void select(const std::vector<std::int64_t>& rows) override;
  void append(RowPart& other) override;
  /// Copies the rows that come into those whose places they take; the others are moved only where those that come need
  /// more slots. Throws what append() throws.
  void put(const RowsInPlaces& rows, RowPart& other) override;
  std::int64_t bytes() const override;
  std::vector<const void*> addresses() const override;
  std::int64_t writable_rows() const override;

 protected:
  /// Writes `key_value` into `storage` after making `slots` slots or more: what a growth rule decides.
  virtual void store(KvStorage& storage, const at::Tensor& key_value, const StepRows& rows, std::int64_t slots) = 0;
  /// Makes `slots` slots or more for so many rows, to be written in place. Returns false where the growth rule does not
  /// write in place.
  virtual bool make_room(KvStorage& storage, std::int64_t rows, std::int64_t slots);
  /// Takes over what the growth rule of `other`, whose rows come, was made for.
  virtual void join(const PlaneCache& other);
  at::Tensor copy_rows(std::int64_t layer, std::int64_t first_row, std::int64_t rows, std::int64_t begin,
                       std::int64_t end) const override;
  /// Allocates every layer before the first append.
  void allocate(std::int64_t slots);
  /// Returns a tensor of rows without slots, in the cache's dtype on its device.
  at::Tensor no_slots(std::int64_t rows) const;
  /// Returns a tensor that has as many rows as the step: what is appended, where it is not packed.
  at::Tensor of_as_many_rows(const at::Tensor& key_value, const StepRows& rows) const;

 private:
  std::vector<KvStorage> layers_;
};

}  // namespace decodelab
