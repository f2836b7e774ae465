// The side of every rank but the first: it does what the first one orders.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "engine/checkpoint/model_config.h"
#include "engine/layers/ranks.h"
#include "engine/ranks/communicator.h"
#include "engine/ranks/exchange.h"
#include "engine/ranks/rank_memory.h"

namespace decodelab {

class Engine;

/// Lets the layers of another rank than the first exchange what they compute.
class RankFollower final : public Ranks {
 public:
  /// `memory` outlives it; `config` is that of the whole model.
  RankFollower(RankMemory& memory, const ModelConfig& config, const CommunicatorRule& rule)
      : memory_(memory), config_(config), exchange_(make_exchange(rule, memory, config)) {}

  void sum(const at::Tensor& part) override;
  /// Returns [R, 0] at once, but while an order asks for this rank's part of the head.
  at::Tensor head(const at::Tensor& normed, const std::function<at::Tensor(const at::Tensor&)>& part_of) override;

  /// Says that `engine`, whose layers have these ranks, is ready, and obeys until the first rank says that this is all,
  /// or has ended. What is thrown by an order is told to all ranks, and ends it too.
  void serve(const Engine& engine);

 private:
  RankMemory& memory_;
  ModelConfig config_;
  std::unique_ptr<Exchange> exchange_;
  bool asked_for_head_ = false;
};

}  // namespace decodelab
