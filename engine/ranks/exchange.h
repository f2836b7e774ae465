// What ranks exchange of tensors, and how.
#pragma once

#include <functional>
#include <memory>

#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/rank_part.h"
#include "engine/ranks/collective.h"
#include "engine/ranks/communicator.h"
#include "engine/ranks/rank_memory.h"

namespace at {
class Tensor;
}

namespace decodelab {

/// One rank's side. Every rank calls the same functions in the same order, on one thread.
class Exchange {
 public:
  /// `memory` outlives it; `config` is that of the whole model.
  Exchange(RankMemory& memory, const ModelConfig& config) : memory_(memory), config_(config) {}
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Does Ranks::sum(). Throws RankFailed.
  void sum(const at::Tensor& part);
  /// Sends `normed`, [R, d] and contiguous, from the first rank to where it stands on the others, has each multiply it
  /// by its part of the head, and returns the logits [R, V] on the first rank, [R, 0] on others. Throws RankFailed.
  at::Tensor head(const at::Tensor& normed, const std::function<at::Tensor(const at::Tensor&)>& part_of);

 protected:
  RankMemory& memory() const { return memory_; }
  /// Returns the rows of the head of a rank: the columns of the logits that it has.
  IndexRange columns(std::int64_t rank) const;
  std::int64_t vocabulary() const { return config_.vocabulary_size; }
  bool first() const { return memory_.rank() == 0; }

 private:
  virtual void add(const at::Tensor& part) = 0;
  virtual void send(const at::Tensor& normed) = 0;
  /// Returns the logits on the first rank, of whose part [R, columns] all ranks have theirs; elsewhere [R, 0].
  virtual at::Tensor collect(const at::Tensor& part) = 0;

  RankMemory& memory_;
  ModelConfig config_;
};

/// Returns what the rule says. `collectives` are those between GPUs, nccl_collectives() but in tests.
std::unique_ptr<Exchange> make_exchange(const CommunicatorRule& rule, RankMemory& memory, const ModelConfig& config,
                                        const Collectives& collectives = nccl_collectives());

}  // namespace decodelab
