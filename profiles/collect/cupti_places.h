// Where in the engine things are launched from: the open layer and stage, and those of every node of a CUDA graph.
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

/// Follows the ranges of one thread. NVTX cannot see into a graph, and a replay runs nothing of the host; but when a
/// node is captured the range that captures it is open.
class CuptiPlaces final : public RangeListener {
 public:
  explicit CuptiPlaces(const CuptiFunctions& functions) : cupti_(functions) {}

  /// Takes the place of this thread's listener, who goes on being told; detach() gives it back, on the same thread.
  void attach();
  void detach();

  /// Whether each range is pushed to CUPTI as an external correlation, so that records of calls carry it. Ranges that
  /// are open are not.
  void push_correlations(bool on);

  void enter(Stage stage) override;
  void leave() override;
  void add(Amount amount, std::int64_t value) override;
  void enter_layer(std::int64_t layer) override;
  void leave_layer() override;
  void enter_step(std::int64_t index) override;
  void leave_step() override;

  /// A node was made, on the thread that calls.
  void created(const CUpti_GraphData& data);
  /// A graph was instantiated or copied: each clone is what its original is.
  void cloned(const CUpti_GraphData& data);
  /// By id, all that were made since attach().
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
  mutable std::mutex mutex_;  ///< Of the nodes, which any thread may make.
  std::unordered_map<std::uint64_t, GraphNode> nodes_;
};

}  // namespace decodelab

#endif
