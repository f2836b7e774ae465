// Remembers the launches that were seen so far, by process and correlation.
#pragma once

#include <cstdint>
#include <unordered_set>

namespace decodelab {

/// A set of launches. Operations of one graph replay share a correlation and are adjacent, so the last launch is
/// compared first.
class LaunchSet {
 public:
  /// Adds a launch and returns whether it is new.
  bool insert(std::int64_t process, std::uint32_t correlation) {
    const Key key{.process = process, .correlation = correlation};
    if (has_last_ && key == last_) {
      return false;
    }
    has_last_ = true;
    last_ = key;
    return seen_.insert(key).second;
  }

 private:
  struct Key {
    std::int64_t process = 0;
    std::uint32_t correlation = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      constexpr std::uint64_t kOddMultiplier =
          0x9e3779b97f4a7c15U;  // 2^64 over the golden ratio: spreads small numbers.
      return static_cast<std::size_t>((static_cast<std::uint64_t>(key.process) * kOddMultiplier + key.correlation) *
                                      kOddMultiplier);
    }
  };

  std::unordered_set<Key, Hash> seen_;
  Key last_;
  bool has_last_ = false;
};

}  // namespace decodelab
