// A decode engine: one model, one plan, and the sessions that decode with them. No torch in this header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/memory_at_hand.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/plan.h"
#include "engine/sampling/sampling_parameters.h"
#include "engine/sampling/token_details.h"

namespace decodelab {

/// A checkpoint on a device, shared by every engine that decodes with it.
class Model {
 public:
  /// Loads a checkpoint directory; `device` is `cpu` or `cuda:n`. Errors are those of load_model_config() and
  /// Weights::load(), and NotEnoughMemory where fewer bytes are at hand than the weights take. The same is asked before
  /// an engine makes weights of its own. Packed weights are kept in default_cache_directory().
  static std::shared_ptr<const Model> load(const std::filesystem::path& directory, ElementType dtype,
                                           const std::string& device, const MemoryAtHand& at_hand = {},
                                           const std::function<void(std::int64_t, std::int64_t)>& progress = {});
  ~Model();

  const ModelConfig& config() const;
  ElementType dtype() const;
  const std::string& device() const;
  std::int64_t weight_bytes() const;
  /// What bringing weights into memory, and what packing them, has taken until now.
  std::int64_t loading_ns() const;
  std::int64_t packing_ns() const;

  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Throws what Model::load() would throw for a malformed checkpoint, without copying any weight.
void check_checkpoint(const std::filesystem::path& directory);

/// What a session is made for.
struct SessionOptions {
  std::int64_t batch_size = 0;
  std::int64_t max_tokens =
      0;  ///< The most tokens that a row will ever hold: prompt and completion; at most the model's positions.
  DetailsRequest details;
  /// Empty: all rows greedy; one: for all rows; or one a row. Throws as complete_sampling().
  std::vector<SamplingParameters> sampling;
};

/// What one step gave, a value a row.
struct StepResult {
  std::vector<std::int64_t> token_ids;
  std::vector<TokenDetails> details;  ///< Empty when the arm computed none.
};

class Engine;

/// The keys and values of a whole batch whose rows are equally long, copied: what a cache is filled with more than
/// once.
class FilledCache {
 public:
  FilledCache();
  ~FilledCache();
  FilledCache(FilledCache&&) noexcept;
  FilledCache& operator=(FilledCache&&) noexcept;

  std::int64_t bytes() const;
  /// All of it, for from_bytes().
  std::vector<std::byte> to_bytes() const;
  /// What to_bytes() made of a cache of `engine`'s model, brought to its device. Throws std::invalid_argument for
  /// anything else.
  static FilledCache from_bytes(std::span<const std::byte> bytes, const Engine& engine);

 private:
  friend class Session;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The state of one batch of sequences: cache and last tokens. It belongs to the caller; several sessions can share one
/// engine, which must outlive them. A session is used by one thread at a time.
class Session {
 public:
  Session(const Engine& engine, const SessionOptions& options);
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// Runs the prompts, one a row and none empty, from position 0, and chooses each row's first token. For a fresh
  /// session only. Throws std::invalid_argument for ids outside of the vocabulary, std::length_error for more tokens
  /// than the session was made for.
  StepResult prefill(std::span<const std::vector<std::int64_t>> prompts);
  /// Feeds each row the token that was chosen for it last, and chooses the next. Throws std::length_error past
  /// `max_tokens`.
  StepResult decode();
  /// Like decode(), but gives what the step before it chose, none where decode_ahead() was not the last call, and
  /// leaves its own tokens on their way to the host: the device goes on while the host reads.
  StepResult decode_ahead();
  /// A decode step whose tokens nobody reads unless read_last() does before the next step.
  void start_step();
  /// What the last decode_ahead() or start_step() left on its way; no tokens where there is nothing.
  StepResult read_last();
  /// prefill() and decode() without a choice: last_logits() is all that they give. A decode step that follows is fed
  /// what this one was.
  void forward(std::span<const std::vector<std::int64_t>> prompts);
  void forward();
  /// Replaces the tokens that the next decode() feeds (teacher forcing; the first input of a filled session).
  void force_tokens(std::span<const std::int64_t> token_ids);

  /// Fills every layer of a fresh session with `length` random keys and values a row, through the plan's own growth
  /// rule, as if that many tokens had been prefilled; the same numbers for every plan, from a counter-based generator
  /// keyed by (seed, layer).
  void fill_random(std::int64_t length, std::uint64_t seed);
  /// A copy of what every layer holds. Throws std::logic_error where rows are not equally long, or hold nothing.
  FilledCache filled() const;
  /// Fills every layer of a fresh session, through the plan's own growth rule, with what filled() copied: the cache is
  /// what it was then. The prompts themselves are not in it, so that a session which penalizes repetitions does not
  /// know them.
  void fill(const FilledCache& filled);
  /// Cuts every row back to `length` tokens.
  void truncate(std::int64_t length);

  /// Keeps these rows, in this order, and drops the others: continuous batching's filter. A row takes along its tokens,
  /// its sampling parameters and the state of its random numbers, so that with a generator a row (the reference's,
  /// Philox's) it goes on as if it were alone; one that is named twice goes on twice. Throws std::invalid_argument for
  /// no row and for rows that are not there.
  void filter(std::span<const std::int64_t> kept);
  /// Puts the rows of `other` under its own: continuous batching's concatenate. Every row may then hold as many tokens
  /// as a row of either could. `other` is left without a batch: nothing but destruction and assignment is defined for
  /// it.
  ///
  /// Throws, before anything has changed, std::invalid_argument for a session of another engine or with another request
  /// for details, and std::logic_error unless both know their next input: prefill() or force_tokens() comes first. Both
  /// throw std::logic_error too while tokens of decode_ahead() or start_step() are unread.
  void concatenate(Session&& other);

  /// Logits of each row's last real position in the last step, [B * V] in row order, as fp32 on the host. Throws
  /// std::logic_error where a row has been through no step yet.
  std::vector<float> last_logits() const;
  std::vector<std::int64_t> lengths() const;
  std::int64_t cache_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A model decoded under a plan. Immutable, so any number of sessions may use it.
class Engine {
 public:
  Engine(std::shared_ptr<const Model> model, const EnginePlan& plan);
  ~Engine();

  const Model& model() const;
  /// Whether a loop over steps is meant to use decode_ahead().
  bool has_async_read_back() const;
  /// Bytes that a prefill (`tokens` = length, `past` = 0) or a decode step (`tokens` = 1, `past` = length) holds at
  /// most beyond the weights, cache included, in closed form; `max_tokens` as in SessionOptions. Used to refuse a cell
  /// before it is tried.
  std::int64_t step_bytes(std::int64_t batch_size, std::int64_t tokens, std::int64_t past,
                          std::int64_t max_tokens) const;

  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace decodelab
