// Lays slices into lanes, with one stack of open slices for each lane.
#include "profiles/write/slices.h"

#include <stdexcept>
#include <string>

namespace decodelab {
namespace {

class Lane {
 public:
  /// Ends the slices that are over at `time_ns`. This is safe for a lane that the next slice does not go into, since no
  /// later slice starts before it.
  void end_until(std::int64_t time_ns) {
    while (!open_.empty() && open_.back().end_ns <= time_ns) {
      end_last();
    }
  }
  bool takes(const Slice& slice) const { return open_.empty() || open_.back().end_ns >= slice.end_ns; }
  void begin(const Slice& slice) {
    edges_.push_back({.time_ns = slice.start_ns, .item = slice.item, .begin = true});
    open_.push_back(slice);
  }
  std::vector<Edge> finish() {
    while (!open_.empty()) {
      end_last();
    }
    return std::move(edges_);
  }

 private:
  void end_last() {
    edges_.push_back({.time_ns = open_.back().end_ns, .item = open_.back().item});
    open_.pop_back();
  }

  std::vector<Slice> open_;
  std::vector<Edge> edges_;
};

}  // namespace

std::vector<std::vector<Edge>> lay_out(std::span<const Slice> sorted) {
  std::vector<Lane> lanes;
  for (const Slice& slice : sorted) {
    bool placed = false;
    for (Lane& lane : lanes) {
      lane.end_until(slice.start_ns);
      if (lane.takes(slice)) {
        lane.begin(slice);
        placed = true;
        break;
      }
    }
    if (!placed) {
      if (lanes.size() == kMostLanes) {
        throw std::runtime_error("More than " + std::to_string(kMostLanes) +
                                 " rows of one track overlap without nesting, which no viewer can show: the trace is "
                                 "not of a machine's own making.");
      }
      lanes.emplace_back().begin(slice);
    }
  }
  std::vector<std::vector<Edge>> edges;
  edges.reserve(lanes.size());
  for (Lane& lane : lanes) {
    edges.push_back(lane.finish());
  }
  return edges;
}

}  // namespace decodelab
