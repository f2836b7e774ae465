// The flags that say how tokens are chosen, under their usual names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "engine/sampling/sampling_parameters.h"

namespace decodelab {

/// What the flags of one command said; it must outlive the parsing.
struct SamplingOptions {
  SamplingParameters all;            ///< Parameters of every row, without the seed.
  std::vector<std::uint64_t> seeds;  ///< One for all rows, or one a row.
  std::vector<std::string> stop;
};

/// Adds --sample, --temperature, --top-k, --top-p, --typical-p and --repetition-penalty; a flag that greedy decoding
/// has no use for turns sampling on.
void add_sampling_flags(CLI::App& command, SamplingParameters& parameters);

/// Adds --seed, which turns sampling on too, and --stop.
void add_completion_flags(CLI::App& command, SamplingOptions& options);

/// Returns the sampling parameters of each of `rows` rows. Throws std::invalid_argument as complete_sampling() does,
/// and for several seeds that are not one for each row.
std::vector<SamplingParameters> sampling_of(const SamplingOptions& options, std::size_t rows);

}  // namespace decodelab
