// A made-up run of arms that differ in what they lose, for the tests of qualities.
#pragma once

#include "tests/reports/sample_run.h"

namespace decodelab::testing {

inline RunData loss_run() {
  SampleOptions options;
  options.batches = {1, 8};
  options.lengths = {128};
  options.arms = {{"native", 1.0, 0.0},
                  {"native,+int8-linear,-packed-linear", 0.6, 0.0},
                  {"native,+int4-linear,-packed-linear", 0.4, 0.0},
                  {"native,+aten-int4-linear,-packed-linear", 0.9, 0.0},
                  {"causal", 2.0, 0.0}};
  options.launches = 3;
  options.with_failures = false;
  RunData data = sample_run(options);
  const double losses[] = {1e-4, 2e-3, 5e-2, 7e-2};
  for (std::size_t arm = 0; arm < std::size(losses); ++arm) {
    data.qualities.push_back({.arm_id = data.arms[arm].id,
                              .tokens = 2048,
                              .log_perplexity = 3.2 + losses[arm],
                              .log_perplexity_error = 0.06,
                              .log_ratio = losses[arm],
                              .log_ratio_error = losses[arm] / 4,
                              .kl_divergence = losses[arm],
                              .kl_divergence_error = losses[arm] / 20,
                              .kl_divergence_999 = 12 * losses[arm],
                              .top_1_agreement = 1 - 2 * losses[arm],
                              .top_1_agreement_error = 0.004,
                              .rms_probability = losses[arm] / 2});
  }
  data.qualities.push_back({.arm_id = data.arms[4].id, .reason = "it shows no logits"});
  return data;
}

}  // namespace decodelab::testing
