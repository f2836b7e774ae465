// What a timed step of a cell does, and how that is named and shown: the one list of phases.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace decodelab {

/// Tables have phases in this order.
enum class Phase {
  prefill,   ///< A step reads the prompts and chooses one token of each.
  decode,    ///< A step feeds each row its last token and chooses the next.
  generate,  ///< A step is a whole completion, prefill included.
  batching,  ///< A step serves several requests, which join and leave a batch.
  /// A step goes on behind what rows hold, for so many tokens of each; what is measured is the time of one of them.
  continuation,
};

/// Holds what a phase and its parts are called, wherever they are shown.
struct PhaseWords {
  Phase phase;
  const char* name;    ///< On the command line, in stores, in protocols and in every output: `decode`.
  const char* step;    ///< One of its steps, in tables: "Decode (token)".
  const char* length;  ///< What the length of its cells counts, in figures: "keys held (tokens)".
  const char* unit;    ///< Of its times in figures: "ms per step".
  double unit_ns;      ///< Nanoseconds of that unit.
};

inline constexpr std::array<PhaseWords, 5> kPhaseWords{{
    {Phase::prefill, "prefill", "Prefill", "prompt (tokens)", "ms per prefill", 1e6},
    {Phase::decode, "decode", "Decode (token)", "keys held (tokens)", "ms per step", 1e6},
    {Phase::generate, "generate", "Decode (total)", "prompt (tokens)", "s per completion", 1e9},
    {Phase::batching, "batching", "Batching", "prompt (tokens)", "ms", 1e6},
    {Phase::continuation, "continue", "Continue (token)", "keys held (tokens)", "ms per token", 1e6},
}};

inline constexpr const PhaseWords& words_of(Phase phase) { return kPhaseWords.at(static_cast<std::size_t>(phase)); }

inline constexpr const char* to_string(Phase phase) { return words_of(phase).name; }

/// Returns whether rows hold tokens before a step of the phase begins; else a step begins with prompts.
inline constexpr bool begins_with_keys(Phase phase) { return phase == Phase::decode || phase == Phase::continuation; }

/// Writes the name: without this, nlohmann's JSON would take the number of the enumerator.
template <typename Json>
void to_json(Json& json, Phase phase) {
  json = to_string(phase);
}

/// Returns all names, with commas between them.
std::string phase_names();

/// Parses a phase's name. Throws std::invalid_argument, naming all, for any other text.
Phase phase_from_string(std::string_view name);

}  // namespace decodelab
