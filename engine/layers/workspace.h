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

  /// Begins a step that feeds each row one token.
  void begin_decode() { begin(true, 0); }
  /// Begins a step that feeds prompts, or what was said before.
  void begin_prefill() { begin(false, 0); }
  /// Begins a pass over guesses of `rows` rows, which stand or fall by what decode steps would have said: it must have
  /// the bits that a decode step of so many rows gives it, although it has more.
  void begin_verification(std::int64_t rows) { begin(false, rows); }
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
  /// Returns the number of rows by which a product of `rows` rows chooses its kernel.
  std::int64_t rows_like(std::int64_t rows) const { return decode_rows_ > 0 ? decode_rows_ : rows; }
  /// Returns positions and masks that were made once for the session, or null where each step makes its own.
  virtual const StepTables* tables() const { return nullptr; }

 protected:
  /// Takes note of what begins; `decodes`: a step whose shape is that of the next one.
  virtual void begin_step(bool decodes) = 0;

 private:
  void begin(bool decodes, std::int64_t decode_rows) {
    decode_rows_ = decode_rows;
    begin_step(decodes);
  }

  std::int64_t decode_rows_ = 0;  ///< Of the decode step whose bits are asked for; 0: of none.
};

/// The reference: every operator allocates its own result.
class PlainWorkspace : public Workspace {
 public:
  void begin_layer(std::int64_t) override {}
  void end_layers() override {}
  at::Tensor allocate(at::IntArrayRef shape, const at::TensorOptions& options) override {
    return at::empty(shape, options);
  }
  bool reuses() const override { return false; }

 protected:
  void begin_step(bool) override {}
};

}  // namespace decodelab
