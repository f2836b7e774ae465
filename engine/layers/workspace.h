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
  /// Says that what follows must have the bits that a decode step of `rows` rows gives it, although it has more: a pass
  /// over guesses, which stand or fall by what decode steps would have said. 0: it need not.
  void set_decode_rows(std::int64_t rows) { decode_rows_ = rows; }
  /// Returns the number of rows by which a product of `rows` rows chooses its kernel.
  std::int64_t rows_like(std::int64_t rows) const { return decode_rows_ > 0 ? decode_rows_ : rows; }
  /// Returns positions and masks that were made once for the session, or null where each step makes its own.
  virtual const StepTables* tables() const { return nullptr; }

 private:
  std::int64_t decode_rows_ = 0;
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
