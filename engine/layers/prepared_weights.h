// What variants make of weights before the first step, made once for all engines of a model.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace decodelab {

/// Weights in other orders or types, by role and transform (`packed transformer.h.0.mlp.c_fc`). Twelve arms that pack a model pack it
/// once; it goes with the last engine that uses it.
class PreparedWeights {
 public:
  /// What `make()`, which returns a std::unique_ptr<Prepared>, made for that key the first time. A key stands for one type.
  template <typename Prepared, typename Make>
  std::shared_ptr<const Prepared> get(const std::string& key, Make&& make) {
    const std::lock_guard lock(mutex_);
    std::weak_ptr<const void>& held = prepared_[key];
    if (const std::shared_ptr<const void> there = held.lock()) {
      return std::static_pointer_cast<const Prepared>(there);
    }
    const std::shared_ptr<const Prepared> made = make();
    held = made;
    return made;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const void>> prepared_;
};

}  // namespace decodelab
