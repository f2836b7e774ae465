// A decode engine: one model, one plan, and the sessions that decode with them. No torch in this header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/memory_at_hand.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/rank_part.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/masks/pattern_masks.h"
#include "engine/masks/token_rules.h"
#include "engine/plan.h"
#include "engine/ranks/communicator.h"
#include "engine/ranks/rank_ranges.h"
#include "engine/sampling/sampling_parameters.h"
#include "engine/sampling/token_details.h"
#include "engine/sequences/sequence_slots.h"

namespace decodelab {

class RankMemory;
class TokenBytes;

/// A checkpoint on a device, shared by every engine that decodes with it.
class Model {
 public:
  /// Loads a checkpoint directory; `device` is `cpu` or `cuda:n`. Throws what load_model_config() and Weights::load()
  /// throw, and NotEnoughMemory where the weights take more bytes than are available; the same check precedes any
  /// weights that an engine makes for itself. Packed weights are kept in default_cache_directory().
  static std::shared_ptr<const Model> load(const std::filesystem::path& directory, ElementType dtype,
                                           const std::string& device, const MemoryAtHand& at_hand = {},
                                           const std::function<void(std::int64_t, std::int64_t)>& progress = {});
  /// Opens a checkpoint directory, of which a part() is wanted: no weight of the whole is brought to the device before
  /// it is asked for, and memory is asked about for the part alone. Throws what load() throws but for that.
  static std::shared_ptr<const Model> open(const std::filesystem::path& directory, ElementType dtype,
                                           const std::string& device, const MemoryAtHand& at_hand = {});
  ~Model();

  const ModelConfig& config() const;
  ElementType dtype() const;
  const std::string& device() const;
  std::int64_t weight_bytes() const;
  /// Return the time spent so far on bringing weights into memory and on packing them.
  std::int64_t loading_ns() const;
  std::int64_t packing_ns() const;
  /// Returns the model of the first `layers` layers, with the last norm and the head behind them: the weights are
  /// shared. Throws std::invalid_argument for layers that it does not have.
  std::shared_ptr<const Model> first_layers(std::int64_t layers) const;
  /// Returns what a rank holds of the model (Weights::part()), on the same device. Throws what that throws, and
  /// NotEnoughMemory where it takes more bytes than are available.
  std::shared_ptr<const Model> part(const RankPart& part) const;

  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A model that guesses what another one says.
struct Draft {
  /// One that is in memory.
  Draft(std::shared_ptr<const Model> loaded);  // NOLINT(google-explicit-constructor): it is the model.
  /// One that `get_model` loads when an engine asks for it, or that `apart` has in another process.
  Draft(ModelConfig its_config, std::function<std::shared_ptr<const Model>()> get_model, DraftMaker its_process);

  ModelConfig config;
  std::function<std::shared_ptr<const Model>()> model;
  DraftMaker apart{};  ///< Empty: it is in no other process.
};

/// Says which draft a name stands for.
using Drafts = std::map<std::string, Draft>;

/// Throws what Model::load() would throw for a malformed checkpoint, without copying any weight.
void check_checkpoint(const std::filesystem::path& directory);

/// Describes the session to create.
struct SessionOptions {
  std::int64_t batch_size = 0;
  /// The most tokens that a row of the cache will ever hold: prompt and completion, or where an encoder reads the
  /// prompt the decoder's own; at most the model's positions.
  std::int64_t max_tokens = 0;
  /// Which details are wanted: none (of no row), one for all rows, or one per row.
  std::vector<DetailsRequest> details;
  /// Sampling parameters: none (all rows are greedy), one for all rows, or one per row. Session() throws what
  /// complete_sampling() throws.
  std::vector<SamplingParameters> sampling;
  /// What may come in the rows: none (everything), one for all rows, or one per row. A pattern needs `vocabulary`, the
  /// bytes of the model's tokens, or `masks`, which have it. Session() throws what check_rules() and compile_pattern()
  /// throw.
  std::vector<TokenRules> rules{};
  std::shared_ptr<const MaskVocabulary> vocabulary{};
  /// Engine::pattern_masks() of the vocabulary, shared with other sessions; null: the session makes its own.
  std::shared_ptr<PatternMasks> masks{};
  /// The bytes of the model's tokens, for rows that want texts; null: they get none.
  std::shared_ptr<const TokenBytes> texts{};
  /// Its rows will join another session: nothing is prepared for decode steps of its own, such as graphs.
  bool joins = false;
};

/// Holds the result of one step, with one value per row.
struct StepResult {
  std::vector<std::int64_t> token_ids;
  std::vector<RowDetails> details;  ///< Empty when the arm computed none.
  /// Rows whose rules left no token: their ids mean nothing. Empty where no row has rules.
  std::vector<bool> exhausted{};
};

/// Holds what one row says in a round of speculation.
struct RowRun {
  std::vector<std::int64_t> token_ids;  ///< The guesses that stand, and one token more.
  std::vector<RowDetails> details;      ///< One for each token; empty when the arm computed none.
  std::int64_t proposed = 0;            ///< Guesses that were checked.
  std::int64_t accepted = 0;            ///< Of these, those that stand.
  bool exhausted = false;               ///< The row's rules left no token behind these, which are guesses alone.
};

class Engine;

/// Holds a copy of the keys and values of a whole batch whose rows are equally long, so that a cache can be filled with
/// them more than once.
class FilledCache {
 public:
  FilledCache();
  ~FilledCache();
  FilledCache(FilledCache&&) noexcept;
  FilledCache& operator=(FilledCache&&) noexcept;

  std::int64_t bytes() const;
  /// Returns the whole cache as bytes, which from_bytes() reads.
  std::vector<std::byte> to_bytes() const;
  /// Reads what to_bytes() returned for a cache of `engine`'s model, and copies it to that model's device. Throws
  /// std::invalid_argument for anything else.
  static FilledCache from_bytes(std::span<const std::byte> bytes, const Engine& engine);
  /// Writes the keys and values as a safetensors file: `layers.N.keys` and `layers.N.values`, [B, L, G * k] each, and
  /// of an encoder's prompts `encoded.N.keys` and `encoded.N.values`. Throws std::runtime_error naming the file when
  /// the system refuses.
  void to_file(const std::filesystem::path& file, const Engine& engine) const;
  /// Reads such a file for a batch of `batch_size` rows; a file of one row serves all of them, as a prefix that was
  /// learned does. Throws std::invalid_argument naming the file where it does not fit the model or the batch, or holds
  /// a number that is not finite.
  static FilledCache from_file(const std::filesystem::path& file, const Engine& engine, std::int64_t batch_size);

  /// Returns the keys and values of the first `tokens` tokens, which share their memory with all.
  FilledCache first(std::int64_t tokens) const;
  /// Copies those of the tokens from `begin` to before `end`; pages are shared.
  FilledCache copy(std::int64_t begin, std::int64_t end) const;

 private:
  friend class Session;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Tokens whose keys and values are there, in pieces of one row, one behind the other.
struct HeldPrefix {
  std::vector<std::int64_t> tokens;
  std::vector<std::shared_ptr<const FilledCache>> pieces;
  /// The log-probability of each token but the first, and of the one that follows, which must be fed next; empty where
  /// nobody needs them.
  std::vector<float> log_probs{};
};

/// The tokens of its own that a decoder with an encoder holds in a session that was filled at random, unless its caller
/// says otherwise.
inline constexpr std::int64_t kHeldByDecoder = 8;

/// Holds the state of one batch of sequences: cache and last tokens. A session belongs to the caller; several sessions
/// can share one engine, which must outlive them. A session is used by one thread at a time.
class Session {
 public:
  Session(const Engine& engine, const SessionOptions& options);
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// Runs the prompts, one per row and none empty, from position 0, and chooses each row's first token. Needs a fresh
  /// session. Throws std::invalid_argument for ids outside of the vocabulary, std::length_error for more tokens than
  /// the session was made for.
  StepResult prefill(std::span<const std::vector<std::int64_t>> prompts);
  /// Feeds each row the token that was chosen for it last, and chooses the next. Throws std::length_error past
  /// `max_tokens`, and std::logic_error while tokens of decode_ahead() or start_step() are unread.
  StepResult decode();
  /// Starts a decode step and returns the tokens of the step before it. The new tokens are copied to the host while the
  /// device runs; the next decode_ahead() or read_last() returns them. Returns no tokens where those of the step before
  /// were returned already, as on the first call.
  StepResult decode_ahead();
  /// Starts a decode step without returning its tokens. read_last() or decode_ahead() returns them; another
  /// start_step() drops them.
  void start_step();
  /// Waits for the tokens of the last decode_ahead() or start_step() and returns them; returns no tokens where none are
  /// unread.
  StepResult read_last();
  /// Feeds each row tokens behind those that it holds, and chooses none: a first prompt, a further turn of a chat, a
  /// piece of a long prompt. Rows may get different numbers of tokens, some of them none. choose() comes next, or
  /// another extend(); extend() in pieces and choose() do what prefill() of the whole does. An encoder reads its
  /// prompts once. Throws what prefill() throws, and std::logic_error while tokens are unread.
  void extend(std::span<const std::vector<std::int64_t>> tokens);
  /// Chooses each row's next token from the logits of its last one, as prefill() and decode() end; a row that was fed
  /// nothing since its last choice chooses again. Throws std::logic_error where a row has been fed nothing at all.
  StepResult choose();
  /// Runs decode() without choosing tokens; last_logits() returns all that it computes. A decode step after it is fed
  /// the same tokens again.
  void forward();
  /// A round of speculation, which does what several decode() steps would: feeds each row the token that was chosen for
  /// it last and, behind it, guesses of what follows, in one pass; then keeps the guesses that the row would have said,
  /// and chooses one token more. Rows may have different numbers of guesses, some of them none.
  ///
  /// Throws what decode() throws, std::invalid_argument for guesses outside of the vocabulary, and std::logic_error
  /// where the plan's cache keeps nothing.
  std::vector<RowRun> verify(std::span<const std::vector<std::int64_t>> guesses);
  /// The same with guesses of the plan's proposer, at most budgets[row] >= 0 of each row. Throws std::logic_error where
  /// the plan has none.
  std::vector<RowRun> speculate(std::span<const std::int64_t> budgets);
  /// Feeds each row tokens as verify() does, the next one first, and chooses none: what another rank does of a round.
  void pass(std::span<const std::vector<std::int64_t>> tokens);
  /// Returns whether the plan's proposer makes its guesses of what foretell() tells it.
  bool listens() const;
  /// Tells the plan's proposer, if any, what each row will say behind the tokens that it was fed. No row says anything
  /// else for it.
  void foretell(std::span<const std::vector<std::int64_t>> completions);
  /// Replaces the tokens that the next decode() feeds (teacher forcing; the first input of a filled session).
  void force_tokens(std::span<const std::int64_t> token_ids);
  /// Lets all tokens so far, forced ones included, be the prompt: the rules of the rows begin with the next choice. For
  /// a session that was filled, whose first input is forced.
  void begin_rules();

  /// Fills every layer of a fresh session with `length` random keys and values per row, through the plan's own growth
  /// rule, as if that many tokens had been prefilled; where an encoder reads the prompt, a prompt of that length and
  /// `decoder_tokens` tokens of the decoder. The numbers are the same for every plan: they come from a
  /// counter-based generator keyed by (seed, layer).
  void fill_random(std::int64_t length, std::uint64_t seed, std::int64_t decoder_tokens = kHeldByDecoder);
  /// Copies what every layer holds. Throws std::logic_error where rows are not equally long, or hold nothing.
  FilledCache filled() const;
  /// Fills every layer of a fresh session, through the plan's own growth rule, with what filled() copied, and so
  /// restores the cache as it was then. The prompts themselves are not copied, so a session that penalizes repetitions
  /// does not know them.
  /// Who guesses what comes next is told that rows hold `tokens`; without them, as after fill_random(), that they hold
  /// so many of which nothing is known.
  void fill(const FilledCache& filled, std::span<const std::vector<std::int64_t>> tokens = {});
  /// Copies the keys and values of tokens that a row holds, from `begin` to before `end`, or shares their pages where
  /// the plan's prefixes are shared. Throws std::invalid_argument for a row or tokens that are not there.
  FilledCache held(std::int64_t row, std::int64_t begin, std::int64_t end) const;
  /// Begins each row of a fresh session with tokens whose keys and values are there, as if it had been fed them; rows
  /// may begin with different numbers of tokens, some of them none. extend() with at least one token of each row comes
  /// next. Log-probabilities of these tokens are those of the prefix, if any. Throws std::invalid_argument for another
  /// number of rows,
  /// and std::logic_error for a session that is not fresh or has an encoder.
  void begin_with(std::span<const HeldPrefix> prefixes);
  /// Cuts every row back to `length` tokens, and gives back memory as if the rest had never been there.
  void truncate(std::int64_t length);
  /// Cuts one row back to `length` tokens, in a time that depends on neither. What it is fed next says the caller, by
  /// extend() or force_tokens().
  void truncate(std::int64_t row, std::int64_t length);

  /// Keeps these rows, in this order, and drops the others: continuous batching's filter. A row keeps its tokens, its
  /// sampling parameters and the state of its random numbers, so that with one generator per row (the reference's,
  /// Philox's) it gets the tokens that it would get alone. Throws std::invalid_argument for an empty list, for rows
  /// that the session does not have, and for a row that is named twice, which is what fork() is for.
  void filter(std::span<const std::int64_t> kept);
  /// Continues row parents[i] as row i; a parent may be named any number of times, and one that is not named goes. Keys
  /// and values, sampling parameters and what penalties know go along, and what the parent chose last; a row that
  /// samples begins with random numbers of its own, those of a session with its seed: seeds[i], or by default that of
  /// fork_seed(parent's seed, i-th sample of that parent). Samples of one prompt: extend(), fork(), choose().
  void fork(std::span<const std::int64_t> parents, std::span<const std::uint64_t> seeds = {});
  /// Appends the rows of `other`: continuous batching's concatenate. Every row may then hold as many tokens as a row of
  /// either session could. `other` is left without a batch: it can only be destroyed or assigned to.
  ///
  /// Throws, before anything has changed, std::invalid_argument for a session of another engine, and std::logic_error
  /// unless both know their next input, from prefill() or force_tokens(). filter() and concatenate() also throw
  /// std::logic_error while tokens of decode_ahead() or start_step() are unread.
  void concatenate(Session&& other);

  /// Puts the rows of `other` in the places of these rows, one each, which are dropped: a join of a batch that keeps
  /// its shape. Only what joins is copied. `other` is left as by concatenate(), and what is thrown is what that throws,
  /// and std::invalid_argument for places that are not there, named twice, or not as many as rows come.
  void put(std::span<const std::int64_t> places, Session&& other);
  /// Adds copies of the last row up to `rows` rows, so that a batch has the shape of a larger one. A copy that samples
  /// draws the numbers that its original draws. Decode steps of that many rows are prepared then, also of a session
  /// that was to join another.
  void pad(std::int64_t rows);

  /// Returns the logits of each row's last real position in the last step, [B * V] in row order, as fp32 on the host.
  /// Throws std::logic_error where a row has been through no step yet.
  std::vector<float> last_logits() const;
  /// Returns the log-probabilities of the tokens that a row was fed, one for each but the first, which the next choice
  /// will return; empty where the arm computes none.
  std::vector<float> prompt_log_probs(std::int64_t row) const;
  std::vector<std::int64_t> lengths() const;
  std::int64_t cache_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Decodes a model under a plan. Immutable, so any number of sessions may use it.
class Engine {
 public:
  /// Throws what check_draft() throws, and std::invalid_argument where the plan's draft is not among `drafts`. Where
  /// the plan shares the model among ranks, this is the first one and starts the others, those in other processes by
  /// `launch`; throws RankFailed where one does not start.
  Engine(std::shared_ptr<const Model> model, const EnginePlan& plan, const Drafts& drafts = {},
         const RankLauncher& launch = {});
  /// Runs another rank than the first under the same plan, until the first one has no more to do. `model` is the whole
  /// one. Throws RankFailed where a rank has failed.
  static void run_rank(const std::shared_ptr<const Model>& model, const EnginePlan& plan, RankMemory& memory);
  ~Engine();

  const Model& model() const;
  /// Returns whether prompts should be looked up in a PrefixStore, and what they do with what it finds.
  bool reuses_prefixes() const { return prefix_reuse() != PrefixReuse::none; }
  PrefixReuse prefix_reuse() const;
  /// Returns the bytes of the matrices that its products read in another type than the model's, by role (RoleSpec).
  const std::map<std::string, std::int64_t>& coded_bytes() const;
  /// Returns whether samples of one prompt prefill it once, and fork.
  bool forks() const;
  /// Returns when requests join and leave a ContinuousBatch.
  const BatchingRule& batching() const;
  /// Returns how many ranks share the model. Where it is more than one, prefixes of rows cannot be taken out of
  /// sessions or put into them, and what FilledCache holds is not turned into bytes.
  std::int64_t ranks() const;
  /// Has the other ranks note the layers and stages that they go through from now on. Throws RankFailed.
  void record_ranks() const;
  /// Ends that, and returns what each of them has noted; nothing where one rank has the whole model. Throws RankFailed.
  std::vector<RankRecord> recorded_ranks() const;
  /// Returns whether sessions keep keys and values; else each step is fed all tokens again, and only tokens fill them.
  bool keeps_keys() const;
  /// Returns whether a loop over steps should call decode_ahead() instead of decode().
  bool has_async_read_back() const;
  /// Returns whether a loop over steps should call speculate() instead of decode().
  bool speculates() const;
  /// Returns what sessions may share so that the masks of a pattern are made once.
  std::shared_ptr<PatternMasks> pattern_masks(std::shared_ptr<const MaskVocabulary> vocabulary) const;
  /// Returns the most bytes, cache included and weights excluded, that a prefill (`tokens` = length, `past` = 0) or a
  /// decode step (`tokens` = 1, `past` = length) holds, in closed form; `max_tokens` as in SessionOptions. Used to
  /// refuse a cell before it is tried. `asked` is what each row asks for.
  std::int64_t step_bytes(std::int64_t batch_size, std::int64_t tokens, std::int64_t past, std::int64_t max_tokens,
                          const DetailsRequest& asked = {}) const;

  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  /// `share` says what this rank holds, before anything is made of it.
  Engine(std::shared_ptr<const Model> model, const EnginePlan& plan, const Drafts& drafts, const RankLauncher& launch,
         const std::function<void(Impl&)>& share);
  static void lead(Impl& impl, const CommunicatorRule& rule, const EnginePlan& plan, const RankLauncher& launch);

  std::unique_ptr<Impl> impl_;
};

}  // namespace decodelab
