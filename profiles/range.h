// Tells a listener which part of a step is running; costs one check of a pointer where there is no listener.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace decodelab {

/// Names the parts of a step, for counters, traces and reports alike. `other` is what lies in none of the other parts.
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
  text,
  draft,       ///< Guesses are made.
  verify,      ///< What lies in no other part of the pass over guesses.
  accept,      ///< What lies in no other part of the choice of guesses that stand.
  all_reduce,  ///< Ranks that share the model exchange what they computed, and wait for each other.
};
inline constexpr std::array<const char*, 17> kStageNames{
    "other",  "embed",   "qkv",  "kv_write", "attention", "projection", "mlp",    "norm",      "head",
    "choice", "details", "host", "text",     "draft",     "verify",     "accept", "all_reduce"};

/// Returns the name of a stage; the last name for a number that is no stage.
constexpr const char* stage_name(Stage stage) {
  return kStageNames[std::min(static_cast<std::size_t>(stage), kStageNames.size() - 1)];
}

/// Names amounts of work that the engine counts because they cannot be seen from outside.
enum class Amount : std::uint8_t {
  lm_head_rows,        ///< Rows that the language-model head computed logits for.
  copied_cache_bytes,  ///< Bytes of keys and values that were held already and were copied to make room.
  cache_writes,        ///< Tensors that new keys and values were written into.
  padding_keys,        ///< Padding: keys given to attention beyond those that the longest row holds.
  padding_tokens,      ///< Tokens of padding that went through the layers.
  random_draws,        ///< Times that a generator was run, for one row or for many.
  graph_launches,      ///< Launches of CUDA graphs, each of which runs recorded work again.
  late_reads,          ///< Steps whose tokens were read after the next step was handed to the device.
  recomputed_tokens,   ///< Tokens that went through the layers again, since nothing of them was kept.
  host_logit_bytes,    ///< Bytes of logits that were copied to the host.
  idle_rows,           ///< Rows of decode steps that nobody asked for: of requests that have ended, and of padding.
  joined_rows,         ///< Rows that joined a batch that decodes, by copying all of it.
  placed_rows,         ///< Rows that took the place of an idle row, of which alone anything was copied.
  dropped_rows,        ///< Rows that left a batch, of which the rest was copied.
  forked_rows,         ///< Rows that began with copies of another row's keys and values.
  walked_masks,        ///< Masks of tokens that were found by a walk over the tree of all tokens.
  kept_masks,          ///< Masks of tokens that had been found before.
  prefix_lookups,      ///< Prompts that were looked up in a prefix store.
  prefix_tokens,       ///< Tokens whose keys and values rows began with, so that they went through no layer.
  prefix_pages,        ///< Pages of keys and values that rows began with and share with a prefix store.
  sorted_logits,       ///< Logits that the host sorted for the details of their row.
  scanned_logits,      ///< Logits that were looked at once for all details of their row.
  tokenizer_calls,     ///< Calls of the tokenizer for the texts of tokens.
  listed_tokens,       ///< Chosen tokens that came with the most probable ones.
  tied_tokens,         ///< Of these, those where more tokens than were asked for are as probable as the last.
  rounds,              ///< Rounds of speculation, of all rows together.
  proposed_tokens,     ///< Guesses that such a round checked.
  accepted_tokens,     ///< Of these, those that stood.
  emitted_tokens,      ///< Tokens that rounds said: the guesses that stood, and one more of each row.
  verified_rows,       ///< Tokens that rounds fed, whose logits were all computed.
  mapped_rows,         ///< Tokens whose embeddings were read from the checkpoint's file.
  all_reduces,         ///< Sums over the ranks that share the model.
  all_reduced_bytes,   ///< Bytes of these sums.
};
inline constexpr std::array<const char*, 33> kAmountNames{
    "lm_head_rows",  "copied_cache_bytes", "cache_writes",     "padding_keys",      "padding_tokens",
    "random_draws",  "graph_launches",     "late_reads",       "recomputed_tokens", "host_logit_bytes",
    "idle_rows",     "joined_rows",        "placed_rows",      "dropped_rows",      "forked_rows",
    "walked_masks",  "kept_masks",         "prefix_lookups",   "prefix_tokens",     "prefix_pages",
    "sorted_logits", "scanned_logits",     "tokenizer_calls",  "listed_tokens",     "tied_tokens",
    "rounds",        "proposed_tokens",    "accepted_tokens",  "emitted_tokens",    "verified_rows",
    "mapped_rows",   "all_reduces",        "all_reduced_bytes"};

/// Receives every range and amount of one thread. The calls that enter and leave come in pairs, properly nested. Layers
/// and steps are optional: their functions do nothing unless a listener overrides them, and counters do not.
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

/// Holds the listener of this thread, or null; set it only while a measurement lasts. It is a variable because
/// libtorch's callbacks take no argument of ours.
inline thread_local RangeListener* range_listener = nullptr;

/// Hides from the thread's listener what happens while this object lives.
class Unheard final {
 public:
  Unheard() : listener_(std::exchange(range_listener, nullptr)) {}
  ~Unheard() { range_listener = listener_; }
  Unheard(const Unheard&) = delete;
  Unheard& operator=(const Unheard&) = delete;

 private:
  RangeListener* listener_;
};

/// Reports a stage to the thread's listener for as long as this object lives.
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

/// Reports a layer to the thread's listener for as long as this object lives. Stages nest inside layers.
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

/// Reports a step to the thread's listener for as long as this object lives. The code that runs the steps numbers them:
/// a generation counts from its prefill (0), a trace from its window.
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

/// Runs `work` as that stage and returns its result.
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
