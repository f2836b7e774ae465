// How a decode step is issued: the interface of the slot `step_runner`, and its reference.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/layers/layer_slots.h"

namespace at {
class Tensor;
}

namespace decodelab {

class EncodedPrompts;
class KvCache;
class Workspace;
class StepRows;
class Transformer;

/// What a runner runs; all of it belongs to the engine and outlives the runner.
struct StepRunnerOptions {
  const Transformer& transformer;
  const Attention& attention;  ///< Of decode steps.
  const WorkspaceFactory& make_workspace;
  const std::string& device;
};

/// One decode step of B rows.
struct DecodeStep {
  const at::Tensor& ids;  ///< [B, 1] int64 on the device
  const StepRows& rows;
  KvCache& cache;                           ///< Written, but not advanced.
  Workspace& workspace;                     ///< The session's, begun for this step.
  const EncodedPrompts* encoded = nullptr;  ///< What a decoder with an encoder attends to; else null.
};

/// Runs the decode steps of one session, from token ids to logits; tokens are chosen outside. Used by one thread at a
/// time.
class StepRunner {
 public:
  virtual ~StepRunner() = default;

  /// Logits [B, V] on the device, valid until the next step.
  virtual at::Tensor decode(const DecodeStep& step) = 0;
  /// Does before the first decode step what would otherwise delay one; told after a prefill. Keys and values past each
  /// row's length may be written, which the next step writes again.
  virtual void prepare(KvCache&) {}
  /// Rows that the cache of a batch needs room for, those beyond the batch as a place for padding to write to.
  virtual std::int64_t cache_rows(std::int64_t batch_size) const { return batch_size; }
};

/// The reference: the host issues every operator of every step.
std::unique_ptr<StepRunner> make_eager_runner(const StepRunnerOptions& options);

}  // namespace decodelab
