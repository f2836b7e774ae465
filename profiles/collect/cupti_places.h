// Follows the layer and stage that are open in the engine, and notes those of every node of a CUDA graph.
#pragma once

#include "profiles/collect/cupti_functions.h"

#ifdef DECODELAB_HAS_CUPTI

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "profiles/range.h"
#include "profiles/trace/events.h"

namespace decodelab {

/// Follows the ranges of one thread. NVTX cannot see into a graph, and a replay runs no code of the host; but while a
/// node is captured, the range that it belongs to is open.
class CuptiPlaces final : public RangeListener {
 public:
  explicit CuptiPlaces(const CuptiFunctions& functions) : cupti_(functions) {}

  /// Becomes the listener of this thread and passes every call on to the listener before it. detach() restores that
  /// one, on the same thread.
  void attach();
  void detach();

  /// Sets whether each range is pushed to CUPTI as an external correlation, so that records of calls carry it. Ranges
  /// that are open already are not pushed.
  void push_correlations(bool on);

  void enter(Stage stage) override;
  void leave() override;
  void add(Amount amount, std::int64_t value) override;
  void enter_layer(std::int64_t layer) override;
  void leave_layer() override;
  void enter_step(std::int64_t index) override;
  void leave_step() override;

  /// Notes a node that was made on the calling thread.
  void created(const CUpti_GraphData& data);
  /// Notes a node of a graph that was instantiated or copied: a clone has the layer and stage of its original.
  void cloned(const CUpti_GraphData& data);
  /// Returns all nodes that were made since attach(), by id.
  std::vector<GraphNode> nodes() const;

 private:
  struct OpenRange {
    std::int32_t layer = kNoLayer;
    Stage stage = Stage::other;
    bool pushed = false;
  };
  void open(OpenRange place);
  void close();
  OpenRange here() const { return open_.empty() ? OpenRange{} : open_.back(); }
  std::uint64_t graph_of(const CUpti_GraphData& data) const;

  const CuptiFunctions& cupti_;
  RangeListener* next_ = nullptr;
  bool attached_ = false;
  bool pushes_ = false;
  std::vector<OpenRange> open_;
  mutable std::mutex mutex_;  ///< Guards nodes_, since any thread may make a node.
  std::unordered_map<std::uint64_t, GraphNode> nodes_;
};

}  // namespace decodelab

#endif
