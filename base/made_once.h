// An object that is made when it is first asked for.
#pragma once

#include <memory>
#include <mutex>

namespace decodelab {

/// Holds what takes long to read or to start and may never be needed. Any thread may ask.
template <typename Made>
class MadeOnce {
 public:
  /// Calls `make()`, which returns a std::shared_ptr<Made>, the first time, and returns the same object ever after.
  template <typename Make>
  std::shared_ptr<Made> get(Make&& make) {
    const std::lock_guard lock(mutex_);
    if (made_ == nullptr) {
      made_ = make();
    }
    return made_;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<Made> made_;
};

}  // namespace decodelab
