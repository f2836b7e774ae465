// Says which part of a step is running, to whoever listens; free when nobody does.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace decodelab {

/// The parts of a step: the one enum that counters, traces and reports name them by. `other` is what lies in none of
/// them.
enum class Stage : std::uint8_t {
  other,
  embed,
  qkv,
  kv_write,
  attention,
  projection,
  mlp,
  norm,
  head,
  choice,
  details,
  host,
};
inline constexpr std::array<const char*, 12> kStageNames{
    "other", "embed", "qkv", "kv_write", "attention", "projection", "mlp", "norm", "head", "choice", "details", "host"};

/// Returns the name of a stage; the last name for a number that is no stage.
constexpr const char* stage_name(Stage stage) {
  return kStageNames[std::min(static_cast<std::size_t>(stage), kStageNames.size() - 1)];
}

/// Amounts of work that nobody can see from outside.
enum class Amount : std::uint8_t {
  lm_head_rows,        ///< Rows that the language-model head computed logits for.
  copied_cache_bytes,  ///< Bytes of keys and values that were held already and were copied to make room.
  cache_writes,        ///< Tensors that new keys and values were written into.
  padding_keys,        ///< Keys that attention was shown beyond those that the longest row holds.
  padding_tokens,      ///< Tokens of padding that went through the layers.
  random_draws,        ///< Times that a generator was run, for one row or for many.
  graph_launches,      ///< Times that recorded work was run again: launches of CUDA graphs.
  late_reads,          ///< Steps whose tokens were read after the next step was handed to the device.
};
inline constexpr std::array<const char*, 8> kAmountNames{"lm_head_rows",   "copied_cache_bytes", "cache_writes",
                                                         "padding_keys",   "padding_tokens",     "random_draws",
                                                         "graph_launches", "late_reads"};

/// Told of every range and amount of one thread. Calls come in pairs, properly nested. Layers and steps are for those
/// who want them: counters do without.
class RangeListener {
 public:
  virtual ~RangeListener() = default;
  virtual void enter(Stage stage) = 0;
  virtual void leave() = 0;
  virtual void add(Amount amount, std::int64_t value) = 0;
  virtual void enter_layer(std::int64_t layer) { static_cast<void>(layer); }
  virtual void leave_layer() {}
  virtual void enter_step(std::int64_t index) { static_cast<void>(index); }
  virtual void leave_step() {}
};

/// The listener of this thread, or null; set it only while a measurement lasts. libtorch's callbacks take no argument
/// of ours, which is why this is a variable.
inline thread_local RangeListener* range_listener = nullptr;

/// The stage that runs while this lives.
class Range final {
 public:
  explicit Range(Stage stage) : listener_(range_listener) {
    if (listener_ != nullptr) {
      listener_->enter(stage);
    }
  }
  ~Range() {
    if (listener_ != nullptr) {
      listener_->leave();
    }
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  RangeListener* listener_;
};

/// The layer that runs while this lives; it has stages inside.
class LayerRange final {
 public:
  explicit LayerRange(std::int64_t layer) : listener_(range_listener) {
    if (listener_ != nullptr) {
      listener_->enter_layer(layer);
    }
  }
  ~LayerRange() {
    if (listener_ != nullptr) {
      listener_->leave_layer();
    }
  }
  LayerRange(const LayerRange&) = delete;
  LayerRange& operator=(const LayerRange&) = delete;

 private:
  RangeListener* listener_;
};

/// The step that runs while this lives, by the count of whoever runs steps: a generation from its prefill (0), a trace
/// from its window.
class StepRange final {
 public:
  explicit StepRange(std::int64_t index) : listener_(range_listener) {
    if (listener_ != nullptr) {
      listener_->enter_step(index);
    }
  }
  ~StepRange() {
    if (listener_ != nullptr) {
      listener_->leave_step();
    }
  }
  StepRange(const StepRange&) = delete;
  StepRange& operator=(const StepRange&) = delete;

 private:
  RangeListener* listener_;
};

/// The result of `work`, run as that stage.
template <typename Work>
auto in_stage(Stage stage, Work&& work) {
  const Range range(stage);
  return std::forward<Work>(work)();
}

inline void count_amount(Amount amount, std::int64_t value) {
  if (range_listener != nullptr) {
    range_listener->add(amount, value);
  }
}

}  // namespace decodelab
