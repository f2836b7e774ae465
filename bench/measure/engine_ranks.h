// Collects what the other ranks that share the model go through, each on a track of its own.
#pragma once

#include "engine/engine.h"
#include "profiles/collect/collector.h"

namespace decodelab {

/// Has the other ranks note their layers and stages between start() and stop(). Operators are those of the first rank
/// alone.
class RankCollector final : public Collector {
 public:
  /// `engine` outlives it, and has several ranks.
  explicit RankCollector(const Engine& engine) : engine_(engine) {}

  std::string name() const override { return "ranks"; }
  Capability probe() override { return {.available = true}; }
  void start(const TraceConfig& config) override;
  void stop() override;
  /// The ranges belong to the steps of `events` that they begin in.
  void drain(TraceEvents& events) override;

 private:
  const Engine& engine_;
  std::vector<RankRecord> records_{};
};

}  // namespace decodelab
