// Keeps the stack of open ranges and the map of nodes.
#include "profiles/collect/cupti_places.h"

#ifdef DECODELAB_HAS_CUPTI

#include <algorithm>
#include <utility>

#include "profiles/collect/cupti_records.h"

namespace decodelab {
namespace {

/// A depth that nested ranges do not reach, so that the stack never grows while steps run.
constexpr std::size_t kUsualDepth = 16;

/// The CuptiPlaces that follows this thread. A node that another thread makes has no layer and stage.
thread_local const CuptiPlaces* places_of_thread = nullptr;

}  // namespace

void CuptiPlaces::attach() {
  open_.reserve(kUsualDepth);
  next_ = std::exchange(range_listener, this);
  places_of_thread = this;
  attached_ = true;
}

void CuptiPlaces::detach() {
  if (attached_) {
    range_listener = next_;
    places_of_thread = nullptr;
    attached_ = false;
  }
}

void CuptiPlaces::push_correlations(bool on) { pushes_ = on; }

void CuptiPlaces::open(OpenRange place) {
  place.pushed = pushes_ && cupti_.push_correlation(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1,
                                                    correlation_of(place.layer, place.stage)) == CUPTI_SUCCESS;
  open_.push_back(place);
}

void CuptiPlaces::close() {
  if (open_.empty()) {
    return;
  }
  if (open_.back().pushed) {
    std::uint64_t last = 0;
    cupti_.pop_correlation(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, &last);
  }
  open_.pop_back();
}

void CuptiPlaces::enter(Stage stage) {
  if (next_ != nullptr) {
    next_->enter(stage);
  }
  open({.layer = here().layer, .stage = stage});
}

void CuptiPlaces::leave() {
  close();
  if (next_ != nullptr) {
    next_->leave();
  }
}

void CuptiPlaces::add(Amount amount, std::int64_t value) {
  if (next_ != nullptr) {
    next_->add(amount, value);
  }
}

void CuptiPlaces::enter_layer(std::int64_t layer) {
  if (next_ != nullptr) {
    next_->enter_layer(layer);
  }
  open({.layer = static_cast<std::int32_t>(layer), .stage = here().stage});
}

void CuptiPlaces::leave_layer() {
  close();
  if (next_ != nullptr) {
    next_->leave_layer();
  }
}

void CuptiPlaces::enter_step(std::int64_t index) {
  if (next_ != nullptr) {
    next_->enter_step(index);
  }
}

void CuptiPlaces::leave_step() {
  if (next_ != nullptr) {
    next_->leave_step();
  }
}

std::uint64_t CuptiPlaces::graph_of(const CUpti_GraphData& data) const {
  std::uint32_t id = 0;
  return data.graph != nullptr && cupti_.graph_id(data.graph, &id) == CUPTI_SUCCESS ? id : 0;
}

void CuptiPlaces::created(const CUpti_GraphData& data) {
  std::uint64_t id = 0;
  if (cupti_.graph_node_id(data.node, &id) != CUPTI_SUCCESS) {
    return;
  }
  const OpenRange place = places_of_thread == this ? here() : OpenRange{};
  const std::scoped_lock lock(mutex_);
  nodes_[id] = {
      .graph_id = graph_of(data), .node_id = id, .original_node_id = 0, .layer = place.layer, .stage = place.stage};
}

void CuptiPlaces::cloned(const CUpti_GraphData& data) {
  std::uint64_t id = 0;
  std::uint64_t original = 0;
  if (cupti_.graph_node_id(data.node, &id) != CUPTI_SUCCESS ||
      cupti_.graph_node_id(data.originalNode, &original) != CUPTI_SUCCESS) {
    return;
  }
  const std::scoped_lock lock(mutex_);
  const auto found = nodes_.find(original);
  GraphNode node = found == nodes_.end() ? GraphNode{} : found->second;
  node.graph_id = graph_of(data);
  node.node_id = id;
  node.original_node_id = original;
  nodes_[id] = node;
}

std::vector<GraphNode> CuptiPlaces::nodes() const {
  const std::scoped_lock lock(mutex_);
  std::vector<GraphNode> nodes;
  nodes.reserve(nodes_.size());
  for (const auto& [id, node] : nodes_) {
    nodes.push_back(node);
  }
  std::ranges::sort(nodes, {}, &GraphNode::node_id);
  return nodes;
}

}  // namespace decodelab

#endif
