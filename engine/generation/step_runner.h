// How a decode step is issued: the interface of the slot `step_runner`, and its reference.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/layers/layer_slots.h"
#include "engine/tensor.h"

namespace decodelab {

class EncodedPrompts;
class KvCache;
class Workspace;
class StepRows;
class Transformer;

/// What a runner runs; all of it belongs to the engine and outlives the runner.
struct StepRunnerOptions {
  const Transformer& transformer;
  const Attention& attention;         ///< Of decode steps.
  const Attention& verify_attention;  ///< Of passes over guesses.
  const WorkspaceFactory& make_workspace;
  const std::string& device;
};

/// One step of B rows: each is fed its next token, and in a pass over guesses those behind it.
struct DecodeStep {
  const at::Tensor& ids;  ///< [B, T] int64 on the device; T is 1 but in a pass over guesses, where padding is any id.
  const StepRows& rows;
  KvCache& cache;                           ///< Written, but not advanced.
  Workspace& workspace;                     ///< The session's, begun for this step.
  const EncodedPrompts* encoded = nullptr;  ///< What a decoder with an encoder attends to; else null.
};

/// What a pass over guesses gives of the S tokens that rows were fed, row after row.
struct Verified {
  at::Tensor hidden;  ///< [S, d]
  at::Tensor logits;  ///< [S, V]
};

/// Runs the decode steps of one session, from token ids to logits; tokens are chosen outside. Used by one thread at a
/// time.
class StepRunner {
 public:
  virtual ~StepRunner() = default;

  /// Logits [B, V] on the device, valid until the next step.
  virtual at::Tensor decode(const DecodeStep& step) = 0;
  /// Runs a pass over guesses, whose outputs are valid until the next step. Each token has the bits that a decode step
  /// at its place would give it, where the layers' variants promise that.
  virtual Verified verify(const DecodeStep& step) = 0;
  /// Does before the first decode step what would otherwise delay one; told after a prefill. Keys and values past each
  /// row's length may be written, which the next step writes again.
  virtual void prepare(KvCache&) {}
  /// Rows that the cache of a batch needs room for, those beyond the batch as a place for padding to write to.
  virtual std::int64_t cache_rows(std::int64_t batch_size) const { return batch_size; }
};

/// Runs a pass over guesses without a record; its rows have one length or go through the layers packed.
Verified verify_eagerly(const StepRunnerOptions& options, const DecodeStep& step);

/// The reference: the host issues every operator of every step.
std::unique_ptr<StepRunner> make_eager_runner(const StepRunnerOptions& options);

}  // namespace decodelab
