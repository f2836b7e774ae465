// The flags that say how tokens are chosen, under their usual names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "engine/masks/token_rules.h"
#include "engine/sampling/sampling_parameters.h"

namespace decodelab {

/// What the flags of one command said; it must outlive the parsing.
struct SamplingOptions {
  SamplingParameters all;            ///< Parameters of every row, without the seed.
  std::vector<std::uint64_t> seeds;  ///< One for all rows, or one a row.
  std::vector<std::string> stop;
  TokenRules rules;          ///< Of every completion.
  std::int64_t samples = 1;  ///< Completions of each prompt that are given.
  std::int64_t best_of = 0;  ///< Completions of each prompt that are drawn; 0: as many as are given.

  std::int64_t drawn() const { return best_of == 0 ? samples : best_of; }
};

/// Adds --sample, --temperature, --top-k, --top-p, --typical-p and --repetition-penalty; a flag that greedy decoding
/// has no use for turns sampling on.
void add_sampling_flags(CLI::App& command, SamplingParameters& parameters);

/// Adds --seed, --samples and --best-of, which turn sampling on too, --stop, and what restricts tokens: --regex,
/// --forbid-eos, --min-tokens, --allow-ids.
void add_completion_flags(CLI::App& command, SamplingOptions& options);

/// Returns the sampling parameters of each of `rows` prompts. Throws std::invalid_argument as complete_sampling() does,
/// for several seeds that are not one for each prompt, and for fewer samples than 1, or than are to be given.
std::vector<SamplingParameters> sampling_of(const SamplingOptions& options, std::size_t rows);

}  // namespace decodelab
