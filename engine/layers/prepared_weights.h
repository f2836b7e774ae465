// What variants make of weights before the first step, made once for all engines of a model.
#pragma once

#include "base/memory_at_hand.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace decodelab {

/// Weights in other orders or types, by role and transform (`packed transformer.h.0.mlp.c_fc`). Twelve arms that pack a model pack it
/// once; it goes with the last engine that uses it.
class PreparedWeights {
 public:
  explicit PreparedWeights(MemoryAtHand at_hand = {}) : at_hand_(std::move(at_hand)) {}

  /// What `make()`, which returns a std::unique_ptr<Prepared> that holds about `bytes`, made for that key the first time. A key stands
  /// for one type. Throws NotEnoughMemory, and makes nothing, where fewer are at hand.
  template <typename Prepared, typename Make>
  std::shared_ptr<const Prepared> get(const std::string& key, std::size_t bytes, Make&& make) {
    const std::lock_guard lock(mutex_);
    std::weak_ptr<const void>& held = prepared_[key];
    if (const std::shared_ptr<const void> there = held.lock()) {
      return std::static_pointer_cast<const Prepared>(there);
    }
    require_memory(static_cast<std::int64_t>(bytes), at_hand_, key);
    const std::shared_ptr<const Prepared> made = make();
    held = made;
    return made;
  }

 private:
  MemoryAtHand at_hand_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const void>> prepared_;
};

}  // namespace decodelab
