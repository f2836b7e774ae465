// The flags that ask for details of tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/plan/prompt_file.h"
#include "engine/sampling/token_details.h"

namespace decodelab {

/// What the flags said; it must outlive the parsing.
struct DetailsOptions {
  bool log_probs = false;  ///< Log-probabilities and ranks of tokens, and log-probabilities of the prompt's.
  bool ranks = false;
  std::int64_t top = 0;
  std::vector<std::int64_t> ids;
  bool prompt_ranks = false;
  std::int64_t prompt_top = 0;
  std::vector<std::int64_t> prompt_ids;
  std::string ties = "keep";
  std::string of = "raw";
  std::int64_t most_top = 100;

  /// Returns what is asked for, of lines whose settings say nothing else, or of one whose settings do. It throws
  /// std::invalid_argument for more tokens than `most_top`, and for other words than those that the flags know.
  DetailsRequest request(const LineSettings& own = {}) const;
};

/// Adds --log-probs, --ranks, --top-tokens, --log-probs-of-ids and those of prompts, --ties, --log-probs-of and
/// --max-top-tokens.
void add_details_flags(CLI::App& command, DetailsOptions& options);

}  // namespace decodelab
