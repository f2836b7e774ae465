// Finds lanes in a sweep over the operations of each stream.
#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include "profiles/trace/join.h"

namespace decodelab {
namespace {

/// The lanes of one stream: those in use, by the end of the operations in them, and those that are free.
class Lanes {
 public:
  std::uint16_t take(std::int64_t start_ns, std::int64_t end_ns) {
    while (!used_.empty() && used_.top().first <= start_ns) {
      free_.push(used_.top().second);
      used_.pop();
    }
    std::uint16_t lane = next_;
    if (!free_.empty()) {
      lane = free_.top();
      free_.pop();
    } else if (next_ < std::numeric_limits<std::uint16_t>::max()) {
      ++next_;
    }
    used_.emplace(std::max(start_ns, end_ns), lane);
    return lane;
  }

 private:
  template <typename Value>
  using Smallest = std::priority_queue<Value, std::vector<Value>, std::greater<>>;

  Smallest<std::pair<std::int64_t, std::uint16_t>> used_;
  Smallest<std::uint16_t> free_;
  std::uint16_t next_ = 0;
};

}  // namespace

void fill_lanes(std::vector<DeviceOperation>& operations) {
  using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t>;
  std::map<Key, Lanes> streams;
  Key last_key;
  Lanes* last = nullptr;
  for (DeviceOperation& operation : operations) {
    const Key key{operation.device, operation.context, operation.stream};
    if (last == nullptr || key != last_key) {
      last = &streams[key];
      last_key = key;
    }
    operation.lane = last->take(operation.start_ns, operation.end_ns);
  }
}

}  // namespace decodelab
