// Weights that variants prepare before the first step, once for all engines of a model.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/memory_at_hand.h"
#include "engine/checkpoint/packed_files.h"

namespace decodelab {

/// Holds weights in other orders or types, by transform and role (`packed transformer.h.0.mlp.c_fc`). Twelve arms that
/// pack a model pack it once; a packed weight is freed with the last engine that uses it.
class PreparedWeights {
 public:
  /// `files` keeps packed weights between processes; with null they are not kept.
  explicit PreparedWeights(MemoryAtHand at_hand = {}, std::unique_ptr<PackedFiles> files = nullptr)
      : at_hand_(std::move(at_hand)), files_(std::move(files)) {}

  /// Calls `make()`, which returns a std::unique_ptr<Prepared> that holds about `bytes`, and returns its result; later
  /// calls for the same key return the same object while anyone holds it. A key stands for one type. Throws
  /// NotEnoughMemory, without calling `make()`, where fewer bytes are available.
  template <typename Prepared, typename Make>
  std::shared_ptr<const Prepared> prepare(const std::string& key, std::size_t bytes, Make&& make) {
    const std::lock_guard lock(mutex_);
    std::weak_ptr<const void>& held = prepared_[key];
    if (const std::shared_ptr<const void> there = held.lock()) {
      return std::static_pointer_cast<const Prepared>(there);
    }
    require_memory(static_cast<std::int64_t>(bytes), at_hand_, key);
    const auto start = std::chrono::steady_clock::now();
    const std::shared_ptr<const Prepared> made = make();
    packing_ns_ += std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
    held = made;
    return made;
  }

  PackedFiles* files() const { return files_.get(); }
  /// Returns how long make() has taken in all calls so far.
  std::int64_t packing_ns() const { return packing_ns_; }

 private:
  MemoryAtHand at_hand_;
  std::unique_ptr<PackedFiles> files_;
  std::atomic<std::int64_t> packing_ns_{0};
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const void>> prepared_;
};

}  // namespace decodelab
