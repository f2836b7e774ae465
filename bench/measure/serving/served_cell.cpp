// Asks for streams, and takes their steps out of the times of their tokens.
#include "bench/measure/serving/served_cell.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include <fmt/format.h>

#include "base/units.h"
#include "reports/statistics/batching_scope.h"

namespace decodelab {
namespace {

/// A batch whose streams never run beside each other, though each says so many tokens more than its steps, does not
/// fit into the server at once.
constexpr std::int64_t kMostSpareTokens = 256;

std::int64_t process_cpu_ns() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  return used.tv_sec * kNanoseconds + used.tv_nsec;
}

}  // namespace

StreamRound ServedCell::counted(const std::vector<std::vector<std::int64_t>>& prompts,
                                const std::vector<std::int64_t>& tokens, const SendPlan& plan) {
  const bool together = plan.after_ns.empty() && plan.most_at_once >= prompts.size();
  std::vector<StreamRequest> requests;
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    requests.push_back({.prompt = prompts[row],
                        .max_tokens = tokens[row],
                        .slot = together ? std::optional(static_cast<std::int64_t>(row)) : std::nullopt});
  }
  const std::int64_t before = process_cpu_ns();
  StreamRound round = server_.streams(requests, plan);
  counts_.client_cpu_ns += process_cpu_ns() - before;
  for (const StreamedCompletion& stream : round.streams) {
    counts_.bundled_tokens += stream.bundled_tokens;
    counts_.read_together += stream.read_together;
  }
  return round;
}

StreamRound ServedCell::streams(std::int64_t tokens) {
  std::vector<std::vector<std::int64_t>> prompts;
  const std::int64_t number = next_prompt_++;
  for (const std::vector<std::int64_t>& prompt : input_.prompts) {
    prompts.push_back(fresh_prompt(prompt, number));
  }
  return counted(prompts, std::vector<std::int64_t>(prompts.size(), tokens), {.most_at_once = prompts.size()});
}

ServedSteps ServedCell::round(std::int64_t steps) {
  ServedSteps done;
  switch (cell_.phase) {
    case Phase::decode: done = decode_round(steps); break;
    case Phase::batching: done = serve_requests(); break;
    case Phase::generate: done.samples_ns = {whole_ns(streams(input_.max_tokens))}; break;
    default: done.samples_ns = {first_token_ns(streams(1))}; break;
  }
  if (cell_.phase == Phase::prefill || cell_.phase == Phase::generate) {
    done.wall_ns = done.samples_ns.front();
  }
  counts_.steps += std::ssize(done.samples_ns);
  return done;
}

ServedSteps ServedCell::decode_round(std::int64_t steps) {
  const std::int64_t most = input_.positions - cell_.length;
  while (true) {
    const std::int64_t tokens = std::min(1 + spare_ + steps, most);
    if (tokens < 2) {
      throw WorkerError(RowStatus::unsupported, fmt::format("a step needs {} positions, and the model has {}",
                                                            cell_.length + 2, input_.positions));
    }
    ServedSteps done = steps_between_tokens(streams(tokens), steps);
    const std::int64_t lacking = steps - std::ssize(done.samples_ns);
    if (!done.samples_ns.empty()) {
      spare_ = std::min(spare_ + lacking, kMostSpareTokens);
      return done;
    }
    if (tokens == most || spare_ >= kMostSpareTokens) {
      throw WorkerError(RowStatus::failed,
                        fmt::format("the {} streams of a batch never ran beside each other: the server should take so "
                                    "many at once (llama-server --parallel {}, vllm serve --max-num-seqs {})",
                                    cell_.batch, cell_.batch, cell_.batch));
    }
    spare_ = std::min(2 * spare_ + cell_.batch, kMostSpareTokens);
  }
}

ServedSteps ServedCell::serve_requests() {
  const BatchingScope scope = batching_scope_from_string(cell_.scope);
  // Requests at a rate come whether or not others are answered; of those that have come at once, the batch is sent.
  SendPlan plan{.most_at_once = static_cast<std::size_t>(cell_.batch)};
  std::vector<std::vector<std::int64_t>> prompts;
  std::vector<std::int64_t> tokens;
  const std::int64_t number = next_prompt_++;
  for (std::size_t request = 0; request < input_.work.planned.size(); ++request) {
    const PlannedRequest& planned = input_.work.planned[request];
    prompts.push_back(fresh_prompt(input_.work.prompts[request], number));
    tokens.push_back(planned.new_tokens);
    if (scope.request_rate > 0) {
      plan.after_ns.push_back(std::llround(kNsOfASecond * planned.arrival / scope.request_rate));
      plan.most_at_once = input_.work.planned.size();
    }
  }
  const StreamRound round = counted(prompts, tokens, plan);
  const std::int64_t wall_ns = whole_ns(round);
  return {.samples_ns = {batching_sample_ns(request_times(round, plan.after_ns), wall_ns, scope)}, .wall_ns = wall_ns};
}

ServedSteps ServedCell::run(std::int64_t steps) {
  ServedSteps all;
  while (std::ssize(all.samples_ns) < steps) {
    const ServedSteps more = round(steps - std::ssize(all.samples_ns));
    all.samples_ns.insert(all.samples_ns.end(), more.samples_ns.begin(), more.samples_ns.end());
    all.wall_ns += more.wall_ns;
  }
  return all;
}

}  // namespace decodelab
