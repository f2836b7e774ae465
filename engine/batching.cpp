// Requests arrive, decode beside each other, and leave.
#include "engine/batching.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "engine/samples.h"

namespace decodelab {
namespace {

/// Throws what generate() would throw for a request by itself.
void check_request(const BatchRequest& request, const ModelConfig& config, std::int64_t held) {
  if (request.prompt.empty()) {
    throw std::invalid_argument("the prompt is empty: a prompt needs at least one token");
  }
  for (const std::int64_t id : request.prompt) {
    if (id < 0 || id >= config.vocabulary_size) {
      throw std::invalid_argument(fmt::format("the prompt has the token id {}, but the vocabulary has the ids 0 to {}",
                                              id, config.vocabulary_size - 1));
    }
  }
  if (request.max_tokens < 1) {
    throw std::invalid_argument(fmt::format("a completion needs at least 1 token, got {}", request.max_tokens));
  }
  if (request.samples < 1) {
    throw std::invalid_argument(fmt::format("a prompt needs at least 1 sample, got {}", request.samples));
  }
  if (held > config.positions) {
    throw std::invalid_argument(
        fmt::format("a prompt of {} tokens and {} more need {} positions, and the model has {}: shorten one of them",
                    request.prompt.size(), request.max_tokens, held, config.positions));
  }
  check_sampling(request.sampling);
  check_rules(request.rules, config.vocabulary_size);
  check_details(request.details, config.vocabulary_size);
}

}  // namespace

ContinuousBatch::ContinuousBatch(const Engine& engine, BatchingOptions options)
    : engine_(engine),
      options_(std::move(options)),
      masks_(engine.pattern_masks(options_.vocabulary)),
      rows_(engine.batching(), options_.max_rows) {
  if (options_.max_rows < 1) {
    throw std::invalid_argument(fmt::format("--max-batch {}: expected at least 1 row", options_.max_rows));
  }
  options_.prefill_chunk = options_.prefill_chunk.value_or(engine_.batching().chunk);
  if (options_.max_tokens_in_flight < 0 || *options_.prefill_chunk < 0) {
    throw std::invalid_argument("--max-tokens-in-flight and --prefill-chunk: expected 0 or more tokens");
  }
  if (engine_.model().config().encoder) {
    options_.prefill_chunk = 0;
  }
  if (!engine_.reuses_prefixes()) {
    options_.prefixes = nullptr;
  }
}
ContinuousBatch::~ContinuousBatch() = default;

/// The last chosen token is not fed back, so it needs no position.
std::int64_t ContinuousBatch::row_tokens(const BatchRequest& request) const {
  return engine_.model().config().held_after_prefill(std::ssize(request.prompt)) + request.max_tokens - 1;
}

std::int64_t ContinuousBatch::submit(BatchRequest request) {
  const std::int64_t held = row_tokens(request);
  check_request(request, engine_.model().config(), held);
  if (request.samples > options_.max_rows) {
    throw std::invalid_argument(
        fmt::format("{} samples of one prompt are more than the {} rows of a batch (--max-batch)", request.samples,
                    options_.max_rows));
  }
  const std::int64_t tokens = held * request.samples;
  if (options_.max_tokens_in_flight > 0 && tokens > options_.max_tokens_in_flight) {
    throw std::invalid_argument(
        fmt::format("the request may come to hold {} tokens, and {} may be in flight (--max-tokens-in-flight)", tokens,
                    options_.max_tokens_in_flight));
  }
  // Refuses what a session would refuse for all of its rows.
  std::shared_ptr<TokenMask> mask = request.rules.regex.empty() ? nullptr : masks_->of(request.rules.regex);
  request.sampling = complete_sampling({&request.sampling, 1}, 1).front();
  Running running{.samples = std::vector<Completion>(static_cast<std::size_t>(request.samples)),
                  .tokens = tokens,
                  .mask = std::move(mask)};
  for (std::size_t sample = 0; sample < running.samples.size(); ++sample) {
    running.samples[sample].seed = sample_seed(request.sampling, request.samples, static_cast<std::int64_t>(sample));
  }
  running.request = std::move(request);
  requests_.emplace(next_id_, std::move(running));
  waiting_.push_back(next_id_);
  return next_id_++;
}

void ContinuousBatch::abort(std::int64_t id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) {
    return;
  }
  for (Completion& sample : found->second.samples) {
    if (sample.open()) {
      sample.finish_reason = "aborted";
    }
  }
  if (std::erase(waiting_, id) > 0) {
    // It takes no rows that its end would give back.
    rows_taken_ += std::ssize(found->second.samples);
    tokens_taken_ += found->second.tokens;
    begun_.insert(id);
  }
}

bool ContinuousBatch::open(const BatchRow& row) const {
  const auto found = requests_.find(row.request);
  return found != requests_.end() && found->second.samples[row.sample].open();
}

/// Takes requests in their order while they fit.
void ContinuousBatch::admit() {
  std::vector<std::int64_t> ids;
  while (!waiting_.empty()) {
    const Running& next = requests_.at(waiting_.front());
    const bool fits =
        rows_taken_ + std::ssize(next.samples) <= options_.max_rows &&
        (options_.max_tokens_in_flight == 0 || tokens_taken_ + next.tokens <= options_.max_tokens_in_flight);
    if (!fits) {
      break;
    }
    rows_taken_ += std::ssize(next.samples);
    tokens_taken_ += next.tokens;
    ids.push_back(waiting_.front());
    begun_.insert(waiting_.front());
    waiting_.pop_front();
  }
  if (!ids.empty()) {
    begin(ids);
  }
}

void ContinuousBatch::begin(const std::vector<std::int64_t>& ids) {
  SessionOptions options{
      .details = {}, .sampling = {}, .rules = {}, .masks = masks_, .texts = options_.texts, .joins = true};
  std::vector<BatchRow> rows;
  for (const std::int64_t id : ids) {
    const Running& running = requests_.at(id);
    options.max_tokens = std::max(options.max_tokens, row_tokens(running.request));
    const std::size_t prefilled = engine_.forks() ? 1 : running.samples.size();
    for (std::size_t sample = 0; sample < prefilled; ++sample) {
      SamplingParameters sampling = running.request.sampling;
      sampling.seed = running.samples[sample].seed;
      options.sampling.push_back(sampling);
      options.rules.push_back(running.request.rules);
      options.details.push_back(running.request.details);
      rows.push_back({.request = id, .sample = sample});
    }
  }
  options.batch_size = std::ssize(rows);
  std::vector<std::size_t> held(rows.size());
  arriving_.emplace(Arriving{.session = Session(engine_, options), .rows = std::move(rows), .held = std::move(held)});
  if (options_.prefixes == nullptr) {
    return;
  }
  std::vector<HeldPrefix> prefixes;
  for (std::size_t row = 0; row < arriving_->rows.size(); ++row) {
    const BatchRequest& request = requests_.at(arriving_->rows[row].request).request;
    prefixes.push_back(prefix_for(*options_.prefixes, request.prompt, request.details));
    arriving_->held[row] = prefixes.back().tokens.size();
    counts_.reused_tokens += std::ssize(prefixes.back().tokens);
  }
  arriving_->session.begin_with(prefixes);
}

/// Feeds each prompt its next piece.
void ContinuousBatch::feed() {
  const auto chunk = static_cast<std::size_t>(*options_.prefill_chunk);
  std::vector<std::vector<std::int64_t>> pieces;
  std::size_t left = 0;
  for (std::size_t row = 0; row < arriving_->rows.size(); ++row) {
    const std::vector<std::int64_t>& prompt = prompt_of(arriving_->rows[row]);
    const std::size_t from = arriving_->held[row];
    const std::size_t to = chunk == 0 ? prompt.size() : std::min(from + chunk, prompt.size());
    arriving_->held[row] = to;
    pieces.emplace_back(prompt.begin() + static_cast<std::ptrdiff_t>(from),
                        prompt.begin() + static_cast<std::ptrdiff_t>(to));
    counts_.prefilled_tokens += static_cast<std::int64_t>(to - from);
    left += prompt.size() - to;
  }
  arriving_->session.extend(pieces);
  ++counts_.prefill_chunks;
  if (left == 0) {
    start(*std::exchange(arriving_, std::nullopt));
  }
}

void ContinuousBatch::start(Arriving arrived) {
  Session& session = arrived.session;
  std::vector<std::int64_t> parents;
  std::vector<std::uint64_t> seeds;
  std::vector<BatchRow> rows;
  for (std::size_t parent = 0; parent < arrived.rows.size(); ++parent) {
    const auto& [id, first] = arrived.rows[parent];
    if (options_.prefixes != nullptr && first == 0) {
      options_.prefixes->insert(prompt_of(arrived.rows[parent]), session, static_cast<std::int64_t>(parent));
    }
    const std::vector<Completion>& samples = requests_.at(id).samples;
    const std::size_t end = engine_.forks() ? samples.size() : first + 1;
    for (std::size_t sample = first; sample < end; ++sample) {
      parents.push_back(static_cast<std::int64_t>(parent));
      seeds.push_back(samples[sample].seed.value_or(0));  // Greedy rows draw nothing.
      rows.push_back({.request = id, .sample = sample});
    }
  }
  if (rows.size() > arrived.rows.size()) {
    session.fork(parents, seeds);
  }
  take(session.choose(), rows);
  std::vector<std::int64_t> kept;
  std::vector<BatchRow> going_on;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (open(rows[row])) {
      kept.push_back(static_cast<std::int64_t>(row));
      going_on.push_back(rows[row]);
    }
  }
  if (kept.empty()) {
    return;
  }
  if (kept.size() < rows.size()) {
    session.filter(kept);
  }
  rows_.join(std::move(session), going_on);
}

void ContinuousBatch::take(const std::vector<BatchRow>& rows,
                           const std::function<void(Completion&, const CompletionLimits&, std::size_t place)>& add) {
  for (std::size_t place = 0; place < rows.size(); ++place) {
    if (!open(rows[place])) {
      continue;
    }
    Running& running = requests_.at(rows[place].request);
    const CompletionLimits limits{
        .max_tokens = running.request.max_tokens,
        .eos_token_ids = options_.eos_token_ids,
        .details = running.request.details,
        .stops = running.request.stops
                     ? [&](std::int64_t token_id) { return running.request.stops(rows[place].sample, token_id); }
                     : std::function<bool(std::int64_t)>()};
    add(running.samples[rows[place].sample], limits, place);
  }
}

void ContinuousBatch::take(const StepResult& step, const std::vector<BatchRow>& rows) {
  take(rows, [&](Completion& completion, const CompletionLimits& limits, std::size_t place) {
    add_step(completion, limits, step, place);
  });
}

/// A round of speculation says one token more than guesses stand.
void ContinuousBatch::speculate() {
  const std::vector<RowRun> runs = rows_.speculate([this](const BatchRow& row) {
    const Running& running = requests_.at(row.request);
    return running.request.max_tokens - std::ssize(running.samples[row.sample].token_ids) - 1;
  });
  take(rows_.rows(), [&](Completion& completion, const CompletionLimits& limits, std::size_t place) {
    add_run(completion, limits, runs[place]);
  });
}

std::vector<FinishedRequest> ContinuousBatch::step() {
  const auto is_open = [this](const BatchRow& row) { return open(row); };
  rows_.settle(is_open);  // Those that were aborted since.
  if (!arriving_ && rows_.takes_requests()) {
    admit();
  }
  if (arriving_) {
    feed();
  }
  if (rows_.open() > 0) {
    if (engine_.speculates()) {
      speculate();
    } else {
      take(rows_.decode(), rows_.rows());
    }
    rows_.settle(is_open);
  }
  return finished();
}

std::vector<FinishedRequest> ContinuousBatch::finished() {
  std::vector<FinishedRequest> all;
  for (auto next = begun_.begin(); next != begun_.end();) {
    Running& running = requests_.at(*next);
    const bool arriving =
        arriving_ && std::ranges::find(arriving_->rows, *next, &BatchRow::request) != arriving_->rows.end();
    if (arriving || std::ranges::any_of(running.samples, &Completion::open)) {
      ++next;
      continue;
    }
    rows_taken_ -= std::ssize(running.samples);
    tokens_taken_ -= running.tokens;
    all.push_back({.id = *next, .samples = std::move(running.samples)});
    requests_.erase(*next);
    next = begun_.erase(next);
  }
  return all;
}

BatchCounts ContinuousBatch::counts() const {
  BatchCounts all = counts_;
  static_cast<BatchRowCounts&>(all) = rows_.counts();
  return all;
}

std::int64_t ContinuousBatch::cache_bytes() const {
  return rows_.cache_bytes() + (arriving_ ? arriving_->session.cache_bytes() : 0);
}

}  // namespace decodelab
