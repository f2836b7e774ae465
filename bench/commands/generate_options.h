// What the flags of `decodelab generate` say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/commands/completion_output.h"
#include "bench/commands/details_options.h"
#include "bench/commands/sampling_options.h"

namespace decodelab {

struct GenerateOptions {
  std::string model;
  std::vector<std::string> prompt_ids;
  std::vector<std::string> prompts;
  std::vector<std::string> questions;
  std::string prompt_file;
  std::int64_t max_tokens = 16;
  std::string arm = "bigcode";
  std::string dtype = "fp32";
  std::string device = "cpu";
  std::int64_t threads = 0;
  bool ignore_eos = false;
  DetailsOptions details;
  std::string logits_file;
  std::string output = "text";
  SamplingOptions sampling;
  std::int64_t max_batch = 8;
  std::int64_t max_tokens_in_flight = 0;
  std::optional<std::int64_t> prefill_chunk{};
  double prefix_store_mb = 0;
  std::vector<std::string> drafts{};  ///< --draft.
  std::int64_t speculate = 0;         ///< Guesses of a row in a round; 0: as the arm says.
  bool speculates = false;            ///< The arm guesses, be it by this flag.

  /// Returns the keys of completions of which these details were asked for.
  CompletionKeys keys(const DetailsRequest& asked, bool has_text) const {
    return {.samples = sampling.samples,
            .ranked = sampling.best_of != 0,
            .details = asked,
            .has_text = has_text,
            .speculates = speculates};
  }
  /// Returns what must be computed to answer that, and to rank samples.
  DetailsRequest computed(DetailsRequest asked) const {
    asked.generated.log_prob = asked.generated.log_prob || sampling.best_of != 0;
    asked.text = asked.generated.top > 0 || asked.prompt.top > 0;
    return asked;
  }
};

}  // namespace decodelab
