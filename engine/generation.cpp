// The loop from prompts to completions.
#include "engine/generation.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "base/select_rows.h"
#include "engine/samples.h"
#include "profiles/range.h"

namespace decodelab {
namespace {

/// Tracks the rows of a batch while it decodes: which completion each row belongs to, and which rows are still open.
class OpenRows {
 public:
  OpenRows(const GenerationRequest& request, std::vector<Completion>& completions)
      : request_(request),
        completions_(completions),
        details_(one_for_each_row(request.details, request.prompts.size(), "requests for details", "prompts")) {
    for (std::size_t row = 0; row < completions.size(); ++row) {
      rows_.push_back(row);
    }
  }

  bool any() const { return open() > 0; }

  /// Adds one step's token and details to each open row, and closes the rows that end with it. A step without tokens
  /// adds none.
  void take(const StepResult& step) {
    for (std::size_t place = 0; place < step.token_ids.size(); ++place) {
      add_step(completions_[rows_[place]], limits_of(rows_[place]), step, place);
    }
  }
  /// Does the same with what each row said in a round.
  void take(const std::vector<RowRun>& runs) {
    for (std::size_t place = 0; place < runs.size(); ++place) {
      add_run(completions_[rows_[place]], limits_of(rows_[place]), runs[place]);
    }
  }

  /// Returns how many guesses of each row may stand: a round says one token more. Nobody guesses for a row that has
  /// ended.
  std::vector<std::int64_t> budgets() const {
    std::vector<std::int64_t> budgets;
    for (const std::size_t row : rows_) {
      const Completion& completion = completions_[row];
      budgets.push_back(completion.open() ? request_.max_tokens - std::ssize(completion.token_ids) - 1 : 0);
    }
    return budgets;
  }

  /// Takes back a token of each row that has ended, since a round feeds it one more and others may have many to go.
  void hold_ended(Session& session) const {
    const std::vector<std::int64_t> lengths = session.lengths();
    for (std::size_t place = 0; place < rows_.size(); ++place) {
      if (!completions_[rows_[place]].open()) {
        session.truncate(static_cast<std::int64_t>(place), lengths[place] - 1);
      }
    }
  }

  /// Drops the rows that have ended once they are half of the batch, so that a batch is cut a few times and not at
  /// every end.
  void drop_ended(Session& session) {
    const std::size_t open_rows = open();
    if (open_rows == 0 || 2 * open_rows > rows_.size()) {
      return;
    }
    std::vector<std::int64_t> kept;
    std::vector<std::size_t> rows;
    for (std::size_t place = 0; place < rows_.size(); ++place) {
      if (completions_[rows_[place]].open()) {
        kept.push_back(static_cast<std::int64_t>(place));
        rows.push_back(rows_[place]);
      }
    }
    session.filter(kept);
    rows_ = std::move(rows);
  }

 private:
  CompletionLimits limits_of(std::size_t row) const {
    CompletionLimits limits{.max_tokens = request_.max_tokens,
                            .eos_token_ids = request_.eos_token_ids,
                            .details = details_[row / static_cast<std::size_t>(request_.samples)],
                            .stops = {}};
    if (request_.stops) {
      limits.stops = [this, row](std::int64_t token_id) { return request_.stops(row, token_id); };
    }
    return limits;
  }

  std::size_t open() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(rows_, [&](std::size_t row) { return completions_[row].open(); }));
  }

  const GenerationRequest& request_;
  std::vector<Completion>& completions_;
  std::vector<DetailsRequest> details_;  ///< Of each prompt.
  std::vector<std::size_t> rows_;        ///< Index of each row's completion.
};

/// Decodes in rounds of speculation until every row has ended.
void speculate_rows(Session& session, OpenRows& rows) {
  for (std::int64_t round = 1; rows.any(); ++round) {
    const StepRange range(round);
    rows.drop_ended(session);
    rows.hold_ended(session);
    rows.take(session.speculate(rows.budgets()));
  }
}

/// Decodes until every row has ended. Where tokens are read late, one more step may be running that no open row needs;
/// the step after the last possible token is never started.
void decode_rows(const Engine& engine, const GenerationRequest& request, Session& session, OpenRows& rows) {
  for (std::int64_t step = 1; rows.any(); ++step) {  // Step 0 is the prefill.
    if (step >= request.max_tokens) {
      rows.take(session.read_last());
      continue;
    }
    const StepRange range(step);
    if (engine.has_async_read_back()) {
      rows.take(session.decode_ahead());
    } else {
      rows.drop_ended(session);
      rows.take(session.decode());
    }
  }
}

}  // namespace

std::vector<Completion> generate(const Engine& engine, const GenerationRequest& request) {
  if (request.prompts.empty()) {
    throw std::invalid_argument("there is nothing to generate from: give at least one prompt");
  }
  if (request.max_tokens < 1) {
    throw std::invalid_argument(fmt::format("a completion needs at least 1 token, got {}", request.max_tokens));
  }
  if (request.samples < 1) {
    throw std::invalid_argument(fmt::format("a prompt needs at least 1 sample, got {}", request.samples));
  }
  const std::size_t longest =
      std::ranges::max_element(request.prompts, {}, [](const auto& prompt) { return prompt.size(); })->size();
  const std::int64_t positions = engine.model().config().positions;
  // The last chosen token is not fed back, so it needs no position.
  const std::int64_t needed =
      engine.model().config().held_after_prefill(static_cast<std::int64_t>(longest)) + request.max_tokens - 1;
  if (needed > positions) {
    throw std::invalid_argument(
        fmt::format("a prompt of {} tokens and {} more need {} positions, and the model has {}: shorten one of them",
                    longest, request.max_tokens, needed, positions));
  }
  const auto batch_size = static_cast<std::int64_t>(request.prompts.size());
  const std::vector<SamplingParameters> sampling = complete_sampling(request.sampling, batch_size);
  const auto samples = static_cast<std::size_t>(request.samples);
  std::vector<Completion> completions(request.prompts.size() * samples);
  for (std::size_t row = 0; row < completions.size(); ++row) {
    completions[row].seed =
        sample_seed(sampling[row / samples], request.samples, static_cast<std::int64_t>(row % samples));
  }
  OpenRows rows(request, completions);
  std::optional<Session> begun;
  {
    const StepRange range(0);
    begun = begin_samples(engine,
                          {.batch_size = batch_size,
                           .max_tokens = needed,
                           .details = request.details,
                           .sampling = sampling,
                           .rules = request.rules,
                           .vocabulary = request.vocabulary,
                           .texts = request.texts},
                          request.prompts, request.samples);
    rows.take(begun->choose());
  }
  Session& session = *begun;
  if (request.keep_prefill_logits) {
    const std::vector<float> logits = session.last_logits();
    const auto vocabulary = static_cast<std::ptrdiff_t>(logits.size() / completions.size());
    for (std::size_t row = 0; row < completions.size(); ++row) {
      const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(row) * vocabulary;
      completions[row].prefill_logits.assign(begin, begin + vocabulary);
    }
  }
  if (engine.speculates()) {
    speculate_rows(session, rows);
  } else {
    decode_rows(engine, request, session, rows);
  }
  return completions;
}

}  // namespace decodelab
