// Where a step's tensors come from: the interface of the slot `workspace`, and its reference.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/layers/step_tables.h"
#include "engine/tensor.h"

namespace decodelab {

/// Hands out the tensors that a step writes into. It belongs to a session and is used by one thread at a time.
class Workspace {
 public:
  virtual ~Workspace() = default;

  /// Begins a step; `decodes` is false for a prefill.
  virtual void begin_step(bool decodes) = 0;
  /// Begins a layer, counted from 0. A tensor allocated in a layer stays valid until the end of the next layer, one
  /// allocated outside of layers until the next step.
  virtual void begin_layer(std::int64_t layer) = 0;
  virtual void end_layers() = 0;
  /// Returns a tensor whose contents are undefined.
  virtual at::Tensor allocate(at::IntArrayRef shape, const at::TensorOptions& options) = 0;
  /// Returns such a tensor with the shape of `x`, but with `width` as last dimension.
  at::Tensor allocate_rows(const at::Tensor& x, std::int64_t width) {
    at::DimVector shape(x.sizes());
    shape.back() = width;
    return allocate(shape, x.options());
  }
  /// Returns true while allocate() reuses memory: operators then write into it instead of allocating.
  virtual bool reuses() const = 0;
  /// Returns positions and masks that were made once for the session, or null where each step makes its own.
  virtual const StepTables* tables() const { return nullptr; }
};

/// The reference: every operator allocates its own result.
class PlainWorkspace : public Workspace {
 public:
  void begin_step(bool) override {}
  void begin_layer(std::int64_t) override {}
  void end_layers() override {}
  at::Tensor allocate(at::IntArrayRef shape, const at::TensorOptions& options) override {
    return at::empty(shape, options);
  }
  bool reuses() const override { return false; }
};

}  // namespace decodelab
