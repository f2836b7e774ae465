// Requests arrive, decode beside each other, and leave.
#include "engine/batching.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "engine/sampling/sampling_slots.h"
#include "engine/sequences/batch_state.h"

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
}

}  // namespace

ContinuousBatch::ContinuousBatch(const Engine& engine, BatchingOptions options)
    : engine_(engine), options_(std::move(options)) {
  if (options_.max_rows < 1) {
    throw std::invalid_argument(fmt::format("--max-batch {}: expected at least 1 row", options_.max_rows));
  }
  if (options_.max_tokens_in_flight < 0 || options_.prefill_chunk < 0) {
    throw std::invalid_argument("--max-tokens-in-flight and --prefill-chunk: expected 0 or more tokens");
  }
  if (engine_.model().config().encoder) {
    options_.prefill_chunk = 0;
  }
  if (!engine_.reuses_prefixes() || options_.details.prefill_log_probs) {
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
  if (!request.rules.regex.empty()) {
    if (options_.vocabulary == nullptr) {
      throw std::invalid_argument("a pattern needs the bytes of the tokens, and the batch was given no vocabulary");
    }
    compile_pattern(request.rules.regex);  // Refuses what a session would refuse for all of its rows.
  }
  request.sampling = complete_sampling({&request.sampling, 1}, 1).front();
  Running running{.samples = std::vector<Completion>(static_cast<std::size_t>(request.samples)), .tokens = tokens};
  for (std::size_t sample = 0; sample < running.samples.size(); ++sample) {
    const std::optional<std::uint64_t>& seed = request.sampling.seed;
    running.samples[sample].seed = request.samples > 1 && seed ? fork_seed(*seed, sample) : seed;
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
  }
}

/// Takes requests in their order while they fit, and makes a session for their prompts.
void ContinuousBatch::admit() {
  std::vector<std::int64_t> ids;
  std::int64_t most_tokens = 0;
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
    most_tokens = std::max(most_tokens, row_tokens(next.request));
    ids.push_back(waiting_.front());
    waiting_.pop_front();
  }
  if (ids.empty()) {
    return;
  }
  SessionOptions options{.batch_size = std::ssize(ids),
                         .max_tokens = most_tokens,
                         .details = options_.details,
                         .sampling = {},
                         .rules = {},
                         .vocabulary = options_.vocabulary};
  for (const std::int64_t id : ids) {
    options.sampling.push_back(requests_.at(id).request.sampling);
    options.rules.push_back(requests_.at(id).request.rules);
  }
  const std::size_t prompts = ids.size();
  arriving_.emplace(Arriving{.session = Session(engine_, options), .ids = std::move(ids), .held = {}});
  arriving_->held.resize(prompts);
  if (options_.prefixes == nullptr) {
    return;
  }
  std::vector<HeldPrefix> prefixes;
  for (std::size_t row = 0; row < prompts; ++row) {
    prefixes.push_back(options_.prefixes->match(requests_.at(arriving_->ids[row]).request.prompt));
    arriving_->held[row] = prefixes.back().tokens.size();
    counts_.reused_tokens += std::ssize(prefixes.back().tokens);
  }
  arriving_->session.begin_with(prefixes);
}

/// Feeds each prompt its next piece.
void ContinuousBatch::feed() {
  std::vector<std::vector<std::int64_t>> pieces;
  std::size_t left = 0;
  for (std::size_t row = 0; row < arriving_->ids.size(); ++row) {
    const std::vector<std::int64_t>& prompt = requests_.at(arriving_->ids[row]).request.prompt;
    const std::size_t from = arriving_->held[row];
    const std::size_t to = options_.prefill_chunk == 0
                               ? prompt.size()
                               : std::min(from + static_cast<std::size_t>(options_.prefill_chunk), prompt.size());
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
  std::vector<std::int64_t> parents;
  std::vector<std::uint64_t> seeds;
  std::vector<Row> rows;
  for (std::size_t parent = 0; parent < arrived.ids.size(); ++parent) {
    const Running& running = requests_.at(arrived.ids[parent]);
    for (std::size_t sample = 0; sample < running.samples.size(); ++sample) {
      parents.push_back(static_cast<std::int64_t>(parent));
      seeds.push_back(running.samples[sample].seed.value_or(0));  // Greedy rows draw nothing.
      rows.push_back({.id = arrived.ids[parent], .sample = sample});
    }
  }
  std::optional<Session> session(std::move(arrived.session));
  for (std::size_t parent = 0; options_.prefixes != nullptr && parent < arrived.ids.size(); ++parent) {
    options_.prefixes->insert(requests_.at(arrived.ids[parent]).request.prompt, *session,
                              static_cast<std::int64_t>(parent));
  }
  if (rows.size() > arrived.ids.size()) {
    session->fork(parents, seeds);
  }
  take(session->choose(), rows);
  drop_ended(session, rows);
  if (!session) {
    return;
  }
  if (!session_) {
    session_ = std::move(session);
  } else {
    session_->concatenate(std::move(*session));
    ++counts_.joined;
  }
  rows_.insert(rows_.end(), rows.begin(), rows.end());
}

void ContinuousBatch::take(const StepResult& step, const std::vector<Row>& rows) {
  for (std::size_t place = 0; place < rows.size(); ++place) {
    Running& running = requests_.at(rows[place].id);
    const CompletionLimits limits{
        .max_tokens = running.request.max_tokens,
        .eos_token_ids = options_.eos_token_ids,
        .details = options_.details,
        .stops = running.request.stops
                     ? [&](std::int64_t token_id) { return running.request.stops(rows[place].sample, token_id); }
                     : std::function<bool(std::int64_t)>()};
    add_step(running.samples[rows[place].sample], limits, step, place);
  }
}

void ContinuousBatch::drop_ended(std::optional<Session>& session, std::vector<Row>& rows) {
  std::vector<std::int64_t> kept;
  std::vector<Row> open;
  for (std::size_t place = 0; place < rows.size(); ++place) {
    if (requests_.at(rows[place].id).samples[rows[place].sample].open()) {
      kept.push_back(static_cast<std::int64_t>(place));
      open.push_back(rows[place]);
    }
  }
  if (open.empty()) {
    session.reset();
  } else if (open.size() < rows.size()) {
    session->filter(kept);
  }
  rows = std::move(open);
}

std::vector<FinishedRequest> ContinuousBatch::step() {
  if (session_) {
    drop_ended(session_, rows_);  // Those that were aborted since.
  }
  if (!arriving_) {
    admit();
  }
  if (arriving_) {
    feed();
  }
  if (session_) {
    ++counts_.decode_steps;
    counts_.decoded_rows += std::ssize(rows_);
    counts_.most_rows = std::max<std::int64_t>(counts_.most_rows, std::ssize(rows_));
    take(session_->decode(), rows_);
    drop_ended(session_, rows_);
  }
  std::vector<FinishedRequest> finished;
  for (auto next = requests_.begin(); next != requests_.end();) {
    Running& running = next->second;
    const bool arriving = arriving_ && std::ranges::find(arriving_->ids, next->first) != arriving_->ids.end();
    if (arriving || std::ranges::any_of(running.samples, &Completion::open)) {
      ++next;
      continue;
    }
    rows_taken_ -= std::ssize(running.samples);
    tokens_taken_ -= running.tokens;
    finished.push_back({.id = next->first, .samples = std::move(running.samples)});
    next = requests_.erase(next);
  }
  return finished;
}

std::int64_t ContinuousBatch::cache_bytes() const {
  return (session_ ? session_->cache_bytes() : 0) + (arriving_ ? arriving_->session.cache_bytes() : 0);
}

}  // namespace decodelab
