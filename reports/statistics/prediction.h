// The time of a whole completion, put together from the measured curves of prefill and decode.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/statistics/summary.h"

namespace decodelab {

/// A completion: `new_tokens` tokens after a prompt of `prompt_tokens`, the first of them by the prefill, the others by
/// a step of decode each, with prompt_tokens keys held at the first of these.
struct CompletionRequest {
  std::int64_t batch = 1;
  std::int64_t prompt_tokens = 0;
  std::int64_t new_tokens = 0;
};

/// What the curves of one arm say about a completion, and what was measured of it.
struct Prediction {
  CompletionRequest request;
  ArmRecord arm;
  CellRecord like;  ///< A cell of the setting (dtype, device, threads) that the curves were measured in.
  std::optional<double> prefill_ns;
  std::optional<double> decode_ns;  ///< Of all steps after the first token.
  std::optional<double> total_ns;   ///< None where `refusal` says why.
  /// 95 % interval, Student's t over launches. It covers how launches differ, but not the error of interpolating
  /// between measured lengths.
  std::optional<Interval> interval;
  bool interpolated = false;          ///< Whether a length lies between two measured ones.
  std::string refusal;                ///< "no prefill was measured at batch 4"; empty where there is a prediction.
  std::optional<double> measured_ns;  ///< Phase generate of the same run, where it has this very completion.
  std::optional<Interval> measured_interval;
  std::int64_t run_id = 0;
  std::int64_t measured_cell_id = 0;  ///< 0 where it was not measured.
};

/// Returns one prediction for each arm that is no roofline, and each setting.
///
/// A curve is a line from measured length to measured length. A visit of decode at length L with m steps measured L ...
/// L + m - 1 keys, so its mean is placed at the middle of them, and is used out to both ends. Beyond the measured
/// lengths nothing is predicted: the refusal names what was measured. Throws std::invalid_argument for fewer than one
/// sequence, prompt token or new token.
std::vector<Prediction> predict_completion(const RunSummary& summary, const CompletionRequest& request);

/// Returns the completions of phase generate that the run measured; where it measured none, one that its curves reach:
/// for each batch the shortest prompt, with as many new tokens as were measured but no more than `most_new_tokens`.
std::vector<CompletionRequest> completions_of(const RunSummary& summary, std::int64_t most_new_tokens = 128);

}  // namespace decodelab
