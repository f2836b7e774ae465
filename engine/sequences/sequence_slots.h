// The slots of a plan that say how sequences begin, go on, join and leave: settings, and factories.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/kernels/element_type.h"
#include "engine/sampling/sampling_parameters.h"

namespace at {
class Tensor;
}

namespace decodelab {

class DraftLength;
class Engine;
class Proposer;
struct ModelConfig;

/// Whether prompts begin with keys and values that an earlier one left, where the caller keeps a PrefixStore.
enum class PrefixReuse : std::uint8_t {
  none,    ///< Nobody looks into the store (the reference).
  missed,  ///< Prompts are looked up and kept, and what is found is not used: what a store costs where it never helps.
  copied,  ///< What is found is copied.
  shared,  ///< What is found are pages, which the store and the rows share.
};

/// How samples of one prompt begin.
enum class ForkWay : std::uint8_t {
  prefill_each,  ///< Each prefills the prompt for itself (the reference: transformers, text-generation-inference).
  copied,        ///< It is prefilled once, and its keys and values are copied for each.
  shared,        ///< It is prefilled once, and samples share what they hold alike, in a cache of pages.
};

/// When requests join the rows that decode, and when rows that have ended leave them.
struct BatchingRule {
  /// How many rows a batch has. A row beyond those of open requests is idle: it is computed, and nobody reads it.
  enum class Rows : std::uint8_t {
    fixed_at_start,  ///< As many as start together: nobody joins before all have ended (the reference).
    as_needed,       ///< Those of open requests, but for those that have ended since the last change.
    powers_of_two,   ///< The least power of two that holds them, so that few shapes occur.
    all,             ///< As many as there may ever be: one shape.
  };
  Rows rows = Rows::fixed_at_start;
  std::int64_t every = 1;  ///< Decode steps from one change of the rows to the next.
  std::int64_t chunk = 0;  ///< As BatchingOptions::prefill_chunk, where that is not given.
};

/// Makes what guesses for the rows of a session, at most `most` tokens of a row, where the draft is in another process.
using DraftMaker =
    std::function<std::unique_ptr<Proposer>(std::int64_t rows, std::int64_t max_tokens, std::int64_t most)>;

/// What guesses are made of, which says where a measurement of them means anything.
enum class GuessesFrom : std::uint8_t {
  text,   ///< What a row has said, which must repeat itself: rows of random ids do not.
  told,   ///< What foretell() told.
  model,  ///< A model.
};

/// What the guesses of a session are made for.
struct ProposerOptions {
  std::int64_t rows = 0;
  std::int64_t max_tokens = 0;                 ///< As in SessionOptions.
  const Engine* draft = nullptr;               ///< The model that guesses, where the rule names one.
  DraftMaker apart{};                          ///< In its place where the rule says that it is apart.
  std::vector<SamplingParameters> sampling{};  ///< Of each row, complete.
  const ModelConfig* config = nullptr;         ///< Of the model that checks the guesses.
  ElementType dtype = ElementType::float32;    ///< Of its weights.
  std::string device;                          ///< That it is on.
  /// Returns the logits [N, V] that the model's head computes from states [N, d] after the last norm.
  std::function<at::Tensor(const at::Tensor& states)> logits_of{};
  bool draws = false;  ///< Guesses of sampled rows are drawn, and come with what they were drawn from.
};

using ProposerFactory = std::function<std::unique_ptr<Proposer>(const ProposerOptions&)>;

/// The draft that is the model itself.
inline constexpr const char* kSelfDraft = "self";

/// Who guesses the tokens of a session.
struct ProposerRule {
  ProposerFactory make{};  ///< Empty: nobody guesses (the reference).
  GuessesFrom from = GuessesFrom::text;
  /// The draft that guesses: one of those that the engine was given, or kSelfDraft; an empty name: the only one given.
  std::optional<std::string> draft{};
  bool apart = false;             ///< The draft is in a process of its own.
  bool shared = false;            ///< Ranks that share the model share the draft too; else the first has all of it.
  bool sees_states = false;       ///< It wants what Proposer::see() shows.
  std::string folder{};           ///< Where its heads are, if it has some.
  std::int64_t first_layers = 0;  ///< Above 0: so many of the model's own layers guess.
};

/// Makes what says how many guesses a session makes; without a function, as many as the proposer likes (the reference).
using DraftLengthFactory = std::function<std::unique_ptr<DraftLength>(std::int64_t rows)>;

}  // namespace decodelab
