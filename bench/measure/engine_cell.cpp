// Makes the sessions of a cell and runs its steps.
#include "bench/measure/engine_cell.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "bench/measure/steps.h"
#include "bench/measure/timed_step.h"
#include "bench/measure/torch_step_events.h"
#include "bench/measure/warmup.h"
#include "bench/plan/held_tokens.h"
#include "bench/plan/prompts.h"
#include "engine/kernels/element_type.h"
#include "engine/samples.h"

namespace decodelab {
std::int64_t decode_room(const ModelConfig& config, const CellRecord& cell) {
  return std::min(config.positions - held_tokens(config, cell), std::max(kMaximumSteps, kWarmupMaximumSteps));
}

void refuse_dead_end(const StepResult& result) {
  if (std::ranges::find(result.exhausted, true) != result.exhausted.end()) {
    throw WorkerError(RowStatus::unsupported,
                      "@regex: the pattern leaves a row no token before the cell's steps end; give one that can always "
                      "go on, such as [^\\n]*");
  }
}

const CacheSnapshots::Snapshot* CacheSnapshots::find(const CellRecord& cell) {
  const auto found = std::ranges::find(kept_, key_of(cell), &std::pair<Key, Snapshot>::first);
  if (found == kept_.end()) {
    return nullptr;
  }
  kept_.splice(kept_.begin(), kept_, found);
  return &kept_.front().second;
}

std::int64_t key_bytes(const Engine& engine, std::int64_t rows, std::int64_t tokens) {
  const ModelConfig& config = engine.model().config();
  return rows * tokens * config.layers * config.kv_width() *
         static_cast<std::int64_t>(element_bytes(engine.model().dtype()));
}

void CacheSnapshots::keep(const CellRecord& cell, Snapshot snapshot) {
  kept_.emplace_front(key_of(cell), std::move(snapshot));
  std::int64_t held = 0;
  for (auto next = kept_.begin(); next != kept_.end();) {
    held += next->second.cache.bytes();
    next = held > kMostBytes ? kept_.erase(next) : std::next(next);
  }
}

CellRunner::CellRunner(const Engine& engine, const CellInput& input, const CellRecord& cell, std::int64_t slow_ns,
                       CacheSnapshots& snapshots)
    : engine_(engine),
      input_(input),
      cell_(cell),
      slow_ns_(slow_ns),
      scope_(scope_of_cell(cell.phase, cell.scope)),
      fill_(cell_fill_from_string(cell.fill)),
      held_(held_tokens(engine.model().config(), cell)),
      snapshots_(snapshots) {
  const ModelConfig& config = engine.model().config();
  if (cell.phase == Phase::decode && engine.speculates()) {
    throw WorkerError(RowStatus::unsupported,
                      "the arm guesses several tokens ahead, and a decode step has one: measure phase continue");
  }
  if (input.request.prefix && engine.ranks() > 1) {
    throw WorkerError(RowStatus::unsupported, "@prefix: ranks share the model, and no prefix is put into their rows");
  }
  if (cell.phase == Phase::batching) {
    work_ = batch_work(input, cell, config.vocabulary_size);
    batching_ = batching_scope_from_string(cell.scope);
    return;
  }
  if (!begins_with_keys(cell.phase) || fill_.generated) {
    prompts_ = cell_prompts(input.prompts, input.seed, cell.batch, cell.length, config.vocabulary_size);
    begin_alike(input.request, cell.batch, prompts_);
  }
  if (begins_with_keys(cell.phase) && !fill_.generated) {
    for (const auto& prompt : random_prompts(input.seed + 1, cell.batch, 1, config.vocabulary_size)) {
      first_tokens_.push_back(prompt.front());
    }
  }
}

void CellRunner::prepare(std::int64_t steps) {
  session_.reset();
  run_.reset();
  steps_left_ = begins_with_keys(cell_.phase) ? steps : 1;
  if (!begins_with_keys(cell_.phase)) {
    prepare_prefixes();
    foresee();
    return;
  }
  make_session(held_ + (cell_.phase == Phase::decode ? steps : input_.max_tokens));
  const auto start = std::chrono::steady_clock::now();
  fill();
  decodelab::synchronize(engine_.model().device());
  snapshots_.filling_ns += std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
  foresee();
}

/// A snapshot holds keys and values alone. A prefill that leaves more (the state of random numbers, the history of
/// penalties) is run again.
void CellRunner::fill() {
  const bool generated = fill_.generated;
  if (!generated && !engine_.keeps_keys()) {
    throw WorkerError(RowStatus::unsupported,
                      "the arm keeps no keys and values, and those of this cell are random, without tokens to compute "
                      "them from again: use --fill generated");
  }
  const bool restores = engine_.keeps_keys() && !(generated && (input_.sampling.sample || input_.sampling.penalizes()));
  if (const CacheSnapshots::Snapshot* snapshot = restores ? snapshots_.find(cell_) : nullptr) {
    session_->fill(snapshot->cache, prompts_);
    first_tokens_ = snapshot->first_tokens;
    force_first();
    return;
  }
  if (generated && restores && restore_kept()) {
    return;
  }
  if (generated) {
    first_tokens_ = session_->prefill(prompts_).token_ids;
    session_->begin_rules();
  } else {
    session_->fill_random(cell_.length, input_.seed, fill_.decoder_tokens);
    force_first();
  }
  // A copy is of what is held; the cache may have room for many more.
  if (restores && key_bytes(engine_, cell_.batch, cell_.length) <= CacheSnapshots::kMostBytes) {
    FilledCache filled = session_->filled();
    if (generated) {
      keep(filled);
    }
    snapshots_.keep(cell_, {.cache = std::move(filled), .first_tokens = first_tokens_});
  }
}

std::string CellRunner::kept_key() const {
  return fmt::format("{}keys of {} rows of {} tokens, {} {} {} threads", input_.kept_key, cell_.batch, cell_.length,
                     cell_.dtype, cell_.device, cell_.threads);
}

bool CellRunner::restore_kept() {
  const auto bytes = input_.kept && engine_.ranks() == 1 ? input_.kept->read(kept_key()) : std::nullopt;
  if (!bytes) {
    return false;
  }
  try {
    BytesReader reader(*bytes);
    std::vector<std::int64_t> first_tokens = reader.numbers();
    FilledCache filled = FilledCache::from_bytes(reader.bytes(), engine_);
    session_->fill(filled, prompts_);
    first_tokens_ = first_tokens;
    force_first();
    snapshots_.keep(cell_, {.cache = std::move(filled), .first_tokens = std::move(first_tokens)});
    return true;
  } catch (const std::logic_error&) {  // the bytes do not fit this model: prefill instead
    make_session(session_tokens_);
    return false;
  }
}

void CellRunner::keep(const FilledCache& filled) const {
  if (input_.kept && engine_.ranks() == 1 && filled.bytes() <= static_cast<std::int64_t>(KeptBytes::kMostOfOne)) {
    BytesWriter writer;
    writer.numbers(first_tokens_);
    writer.bytes(filled.to_bytes());
    input_.kept->keep(kept_key(), writer.written());
  }
}

void CellRunner::discard_first_step() {
  if (begins_with_keys(cell_.phase)) {
    session_->decode();
    session_->truncate(held_);
    force_first();
  }
}

void CellRunner::force_first() {
  session_->force_tokens(first_tokens_);
  session_->begin_rules();
}

void CellRunner::prepare_prefixes() {
  if (!input_.request.prefix || !engine_.reuses_prefixes() || cell_.phase == Phase::batching) {
    return;
  }
  if (prefixes_) {
    for (const std::vector<std::int64_t>& prompt : prompts_) {
      prefixes_->erase(prompt);
    }
    return;
  }
  const std::int64_t held = input_.request.prefix_tokens(cell_.length);
  prefixes_.emplace(engine_, std::numeric_limits<std::int64_t>::max());
  if (held > 0) {
    std::vector<std::vector<std::int64_t>> beginnings = prompts_;
    std::ranges::for_each(beginnings, [held](auto& row) { row.resize(static_cast<std::size_t>(held)); });
    Session session(engine_, {.batch_size = cell_.batch, .max_tokens = held, .details = {}, .sampling = {}});
    session.extend(beginnings);
    for (std::size_t row = 0; row < beginnings.size(); ++row) {
      prefixes_->insert(beginnings[row], session, static_cast<std::int64_t>(row));
    }
  }
}

StepResult CellRunner::step() {
  --steps_left_;
  if (cell_.phase == Phase::decode) {
    return decode_step();
  }
  if (cell_.phase == Phase::continuation) {
    begin_run(input_.max_tokens);
    while (!run_round()) {
    }
    return end_run();
  }
  if (cell_.phase == Phase::batching) {
    served_ = serve(engine_, work_,
                    {.max_rows = cell_.batch,
                     .max_tokens = input_.max_tokens,
                     .request_rate = batching_.request_rate,
                     .clock = arrivals_,
                     .slow_ns = slow_ns_,
                     .sampling = input_.sampling,
                     .request = input_.request,
                     .vocabulary = input_.vocabulary,
                     .texts = input_.texts});
    return {};
  }
  const std::int64_t new_tokens = cell_.phase == Phase::generate ? input_.max_tokens - 1 : 0;
  begin(held_ + new_tokens);
  if (scope_.forward) {
    return {};
  }
  if (!foreseen_.empty()) {
    session_->foretell(foreseen_);
  }
  StepResult first = session_->choose();
  refuse_dead_end(first);
  if (new_tokens == 0 && !engine_.speculates()) {
    return first;
  }
  begin_run(1 + new_tokens, first);
  while (run_->said < run_->tokens) {
    run_round();
  }
  return end_run();
}

void CellRunner::begin_run(std::int64_t tokens, const StepResult& first) {
  run_ = {.tokens = tokens, .said = first.token_ids.empty() ? 0 : 1, .last = first};
  if (!engine_.speculates()) {
    return;
  }
  said_.assign(session_->lengths().size(), {});
  for (std::size_t row = 0; row < first.token_ids.size(); ++row) {
    said_[row] = {first.token_ids[row]};
  }
  if (cell_.phase == Phase::continuation && !foreseen_.empty()) {
    session_->foretell(foreseen_);
  }
}

bool CellRunner::run_round() {
  if (engine_.speculates()) {
    speculate();
  } else {
    run_->last = decode_step();
    ++run_->said;
  }
  return run_->said == run_->tokens;
}

void CellRunner::speculate() {
  const auto left = [&](std::size_t row) { return run_->tokens - std::ssize(said_[row]); };
  const std::vector<std::int64_t> lengths = session_->lengths();
  std::vector<std::int64_t> budgets;
  for (std::size_t row = 0; row < said_.size(); ++row) {
    budgets.push_back(std::max<std::int64_t>(0, left(row) - 1));
    if (left(row) == 0) {  // It waits for the others, and its last token is fed again.
      session_->truncate(static_cast<std::int64_t>(row), lengths[row] - 1);
    }
  }
  const std::vector<RowRun> runs = session_->speculate(budgets);
  std::int64_t most_left = 0;
  for (std::size_t row = 0; row < said_.size(); ++row) {
    if (left(row) > 0) {
      refuse_dead_end({.token_ids = {}, .details = {}, .exhausted = {runs[row].exhausted}});
      std::ranges::copy(runs[row].token_ids, std::back_inserter(said_[row]));
    }
    most_left = std::max(most_left, left(row));
  }
  run_->said = run_->tokens - most_left;
}

StepResult CellRunner::end_run() {
  StepResult last = std::move(run_->last);
  run_.reset();
  if (engine_.speculates()) {
    last = {};
    std::ranges::transform(said_, std::back_inserter(last.token_ids), [](const auto& row) { return row.back(); });
    return last;
  }
  return engine_.has_async_read_back() ? session_->read_last() : last;
}

void CellRunner::foresee() {
  const bool whole = cell_.phase == Phase::generate;
  if ((!whole && cell_.phase != Phase::continuation) || !engine_.speculates() || !foreseen_.empty()) {
    return;
  }
  if (whole) {
    begin(held_ + input_.max_tokens - 1);
  }
  if (!session_->listens()) {
    return;
  }
  if (!whole && input_.sampling.sample) {
    throw WorkerError(RowStatus::unsupported,
                      "what rows will say is told once, and a step that is taken back takes no random number back: "
                      "measure phase generate, or rows that do not draw");
  }
  // What is said first was fed by nobody yet, and the token that a continuation begins with counts for none of its own.
  const std::vector<std::int64_t> first = whole ? session_->choose().token_ids : first_tokens_;
  for (const std::int64_t token : first) {
    foreseen_.push_back({token});
  }
  for (std::int64_t step = whole ? 1 : 0; step < input_.max_tokens; ++step) {
    const std::vector<std::int64_t> next = session_->decode().token_ids;
    for (std::size_t row = 0; row < next.size(); ++row) {
      foreseen_[row].push_back(next[row]);
    }
  }
  if (!whole) {
    rewind();
  }
}

StepResult CellRunner::decode_step() {
  if (scope_.forward) {
    session_->forward();
    return {};
  }
  StepResult result = engine_.has_async_read_back() ? session_->decode_ahead() : session_->decode();
  refuse_dead_end(result);
  return result;
}

void CellRunner::rewind() {
  if (scope_.at_length || cell_.phase == Phase::continuation) {
    session_->truncate(held_);
    force_first();
  }
}

std::vector<std::int64_t> CellRunner::visible_end_ns(std::int64_t steps, std::int64_t& whole_ns) {
  StepEvents events(engine_.model().device(), steps);
  whole_ns = timed_ns(
      [&] {
        events.mark();
        for (std::int64_t step = 0; step < steps; ++step) {
          session_->start_step();
          events.mark();
        }
        session_->read_last();
      },
      engine_.model().device(), slow_ns_ * steps);
  return events.step_ns();
}

StepTime CellRunner::timed_step() {
  const bool serves = cell_.phase == Phase::batching;  // Its steps wait by themselves where an arm is slow on purpose.
  const std::int64_t wall_ns = timed_ns([this] { step(); }, engine_.model().device(), serves ? 0 : slow_ns_);
  if (cell_.phase == Phase::continuation) {
    rewind();
    return {.wall_ns = wall_ns, .sample_ns = wall_ns / input_.max_tokens};
  }
  return {.wall_ns = wall_ns,
          .sample_ns = serves ? batching_sample_ns(served_.times, served_.wall_ns, batching_) : wall_ns};
}

StepTime CellRunner::timed_round() {
  const std::string& device = engine_.model().device();
  const std::int64_t before_ns = run_ ? run_->wall_ns : 0;
  bool ended = false;
  std::int64_t wall_ns = timed_ns(
      [&] {
        if (!run_) {
          --steps_left_;
          begin_run(input_.max_tokens);
        }
        ended = run_round();
        if (ended) {
          end_run();
        }
      },
      device, 0);
  if (!ended) {
    run_->wall_ns += wall_ns;
    return {.wall_ns = wall_ns, .sample_ns = 0};
  }
  wall_ns += timed_ns([] {}, device, slow_ns_);
  rewind();
  return {.wall_ns = wall_ns, .sample_ns = (before_ns + wall_ns) / input_.max_tokens};
}

void CellRunner::begin(std::int64_t max_tokens) {
  session_tokens_ = max_tokens;
  session_ = begin_samples(engine_, session_options(max_tokens), prompts_,
                           samples_of(input_.request, cell_.phase, cell_.scope), prefixes_ ? &*prefixes_ : nullptr);
}

void CellRunner::make_session(std::int64_t max_tokens) {
  session_tokens_ = max_tokens;
  session_.emplace(engine_, session_options(max_tokens));
}

SessionOptions CellRunner::session_options(std::int64_t max_tokens) const {
  SessionOptions options{.batch_size = cell_.batch,
                         .max_tokens = max_tokens,
                         .details = {input_.request.details()},
                         .sampling = {input_.sampling}};
  if (input_.request.rules().any()) {
    options.rules = {input_.request.rules()};
    options.vocabulary = input_.vocabulary;
  }
  if (input_.request.text) {
    options.texts = input_.texts;
  }
  return options;
}

}  // namespace decodelab
