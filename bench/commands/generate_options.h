// What the flags of `decodelab generate` say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/commands/completion_output.h"
#include "bench/commands/sampling_options.h"
#include "engine/sampling/token_details.h"

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
  bool log_probs = false;
  std::string logits_file;
  std::string output = "text";
  SamplingOptions sampling;
  std::int64_t max_batch = 8;
  std::int64_t max_tokens_in_flight = 0;
  std::optional<std::int64_t> prefill_chunk{};
  double prefix_store_mb = 0;

  CompletionKeys keys() const {
    return {.samples = sampling.samples, .ranked = sampling.best_of != 0, .log_probs = log_probs};
  }
  DetailsRequest details() const {
    return {.prefill_log_probs = log_probs, .token_log_prob = log_probs || sampling.best_of != 0, .rank = log_probs};
  }
};

}  // namespace decodelab
