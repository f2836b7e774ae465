// One cell that a server computes, step by step, with counts of how its tokens came.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/measure/serving/completion_server.h"
#include "bench/measure/serving/served_steps.h"
#include "bench/measure/worker.h"
#include "bench/plan/batch_work.h"
#include "reports/store/record.h"

namespace decodelab {

/// What rows of a cell begin with, and how far they go.
struct ServedInput {
  std::vector<std::vector<std::int64_t>> prompts{};  ///< One for each row.
  BatchWork work{};                                  ///< Of phase batching, which has no prompts.
  std::int64_t max_tokens = 0;                       ///< Of a completion, phase generate.
  std::int64_t positions = 0;                        ///< Of the model.
};

/// How the tokens of timed streams came. Counts add up over all steps that a cell has run.
struct ServedCounts {
  std::int64_t bundled_tokens = 0;  ///< As in StreamedCompletion, like the next.
  std::int64_t read_together = 0;
  std::int64_t client_cpu_ns = 0;  ///< Processor time that this process has used meanwhile.
  std::int64_t steps = 0;
};

/// Runs steps of a cell. What it is made with must outlive it.
///
/// Each round of streams has prompts of its own (fresh_prompt()), which no earlier round of the server had. Decode: the
/// streams of a round get as many tokens as let all of them run beside each other for its steps.
class ServedCell {
 public:
  /// `next_prompt` is the number of the next round's prompts, which each round counts up.
  ServedCell(CompletionServer& server, const CellRecord& cell, const ServedInput& input, std::int64_t& next_prompt)
      : server_(server), cell_(cell), input_(input), next_prompt_(next_prompt), spare_(cell.batch - 1) {}

  /// Runs one round of streams, and returns at least one and at most `steps` steps of it. Throws WorkerError,
  /// `unsupported` where the model's positions leave no room for a step.
  ServedSteps round(std::int64_t steps);
  /// Runs as many rounds as exactly `steps` steps need.
  ServedSteps run(std::int64_t steps);
  const ServedCounts& counts() const { return counts_; }

 private:
  /// Runs streams of `tokens` tokens for every row.
  StreamRound streams(std::int64_t tokens);
  ServedSteps decode_round(std::int64_t steps);
  ServedSteps serve_requests();
  StreamRound counted(const std::vector<std::vector<std::int64_t>>& prompts, const std::vector<std::int64_t>& tokens,
                      const SendPlan& plan);

  CompletionServer& server_;
  const CellRecord& cell_;
  const ServedInput& input_;
  std::int64_t& next_prompt_;
  std::int64_t spare_;  ///< Tokens of a decode stream beyond its steps: what it says before the last one has begun.
  ServedCounts counts_;
};

}  // namespace decodelab
