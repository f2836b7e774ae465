// One batch of sequences from prompt to last token: a forward step, the choice, and the details.
#include <algorithm>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

#include "engine/session_impl.h"
#include "profiles/range.h"

namespace decodelab {
namespace {

std::vector<std::int64_t> ones(std::int64_t count) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(count), 1);
}

/// Returns the tokens of all rows as one tensor [B, T], each row padded at its end with token 0.
at::Tensor padded_ids(std::span<const std::vector<std::int64_t>> tokens, std::int64_t longest,
                      std::int64_t vocabulary_size) {
  at::Tensor ids = at::zeros({std::ssize(tokens), longest}, at::kLong);
  auto* row = ids.mutable_data_ptr<std::int64_t>();
  for (std::size_t index = 0; index < tokens.size(); ++index, row += longest) {
    for (const std::int64_t id : tokens[index]) {
      if (id < 0 || id >= vocabulary_size) {
        throw std::invalid_argument(fmt::format("prompt {} has the token id {}, but the vocabulary has the ids 0 to {}",
                                                index + 1, id, vocabulary_size - 1));
      }
    }
    std::ranges::copy(tokens[index], row);
  }
  return ids;
}

/// Returns the rules of each row.
std::vector<TokenRules> rules_of_rows(const SessionOptions& asked) {
  const auto rows = static_cast<std::size_t>(asked.batch_size);
  if (asked.rules.size() == 1) {
    return {rows, asked.rules.front()};
  }
  if (asked.rules.size() != rows) {
    throw std::invalid_argument(fmt::format("{} rules came for {} rows; expected none, one for all, or one for each",
                                            asked.rules.size(), rows));
  }
  return asked.rules;
}

}  // namespace

Session::Impl::Impl(const Engine::Impl& of, const SessionOptions& asked)
    : engine(of),
      details(asked.details),
      runner(of.step_runner()),
      joins(asked.joins),
      rows_of_steps(asked.batch_size) {
  const std::int64_t spare_rows = runner->cache_rows(asked.batch_size) - asked.batch_size;
  state.cache = engine.cache(asked.batch_size, asked.max_tokens, spare_rows);
  state.sampling.values = complete_sampling(asked.sampling, asked.batch_size);
  state.prompt_log_probs.values.resize(static_cast<std::size_t>(asked.batch_size));
  workspace = engine.make_workspace(model().config.positions, model().device);
  renew_choice();
  if (!state.cache->keeps()) {
    state.fed = std::make_unique<RowTokens>();
    state.fed->values.resize(static_cast<std::size_t>(asked.batch_size));
  }
  if (state.penalizes()) {
    state.history = new_history();
  }
  if (std::ranges::any_of(asked.rules, &TokenRules::any)) {
    PatternMasks own(engine.make_token_mask, asked.vocabulary);
    state.masks = std::make_unique<RowMasks>(rules_of_rows(asked), asked.masks == nullptr ? own : *asked.masks,
                                             model().config.vocabulary_size);
  }
}

StepRows Session::Impl::rows(std::vector<std::int64_t> added) const {
  return {state.cache->lengths(),     std::move(added),      model().config.positions,
          at::Device(model().device), engine.prefill_layout, workspace->tables()};
}

StepRows Session::Impl::rows_of_one_length(std::int64_t added) const {
  return rows(std::vector<std::int64_t>(static_cast<std::size_t>(batch_size()), added));
}

std::unique_ptr<TokenHistory> Session::Impl::new_history() const {
  return std::make_unique<TokenHistory>(batch_size(), model().config.vocabulary_size, at::Device(model().device));
}

void Session::Impl::renew_choice() {
  state.choice =
      engine.make_token_choice({.rows = state.sampling.values, .device = model().device, .make_rng = engine.make_rng});
}

void Session::Impl::renew_steps() {
  spare.push_back({.rows = rows_of_steps, .workspace = std::move(workspace), .runner = std::move(runner)});
  rows_of_steps = batch_size();
  const auto known = std::ranges::find(spare, rows_of_steps, &StepMemory::rows);
  if (known != spare.end()) {
    workspace = std::move(known->workspace);
    runner = std::move(known->runner);
    spare.erase(known);
  } else {
    workspace = engine.make_workspace(model().config.positions, model().device);
    runner = engine.step_runner();
  }
  if (spare.size() > kMostSpare) {
    spare.erase(spare.begin());
  }
  prepare_steps();
}

void Session::Impl::prepare_steps() {
  if (!joins) {
    runner->prepare(*state.cache);
  }
}

void Session::Impl::refuse_unread(const char* what) const {
  if (!unread.empty()) {
    throw std::logic_error(fmt::format("{} while tokens are unread: read_last() comes before it", what));
  }
}

ForwardStep Session::Impl::step_of(const StepRows& rows) const {
  return {.rows = rows, .workspace = *workspace, .encoded = state.encoded.get()};
}

void Session::Impl::refuse_without_cache(const char* what) const {
  if (!state.cache->keeps()) {
    throw std::logic_error(
        fmt::format("{} needs a cache, and the plan's keeps no keys and values: extend() by tokens", what));
  }
}

Session::Impl::Feed Session::Impl::begin_tokens(std::span<const std::vector<std::int64_t>> tokens) {
  if (std::ssize(tokens) != batch_size()) {
    throw std::invalid_argument(
        fmt::format("the session has {} rows, but {} prompts came", batch_size(), tokens.size()));
  }
  std::vector<std::int64_t> added;
  for (const auto& row : tokens) {
    added.push_back(std::ssize(row));
  }
  if (std::ranges::max(added) == 0) {
    throw std::invalid_argument("there is nothing to feed: expected at least one token in at least one row");
  }
  StepRows step_rows = rows(std::move(added));
  at::Tensor ids = padded_ids(tokens, step_rows.tokens(), model().config.vocabulary_size).to(step_rows.device());
  if (model().config.encoder) {
    return encode(ids, step_rows);
  }
  state.cache->check_room(step_rows);
  if (state.history) {
    state.history->add({tokens.begin(), tokens.end()}, state.cache->lengths());
  }
  if (state.fed) {
    for (std::size_t row = 0; row < tokens.size(); ++row) {
      std::vector<std::int64_t>& all = state.fed->values[row];
      all.insert(all.end(), tokens[row].begin(), tokens[row].end());
    }
    return all_tokens_again();
  }
  return {.ids = std::move(ids), .rows = std::move(step_rows)};
}

Session::Impl::Feed Session::Impl::all_tokens_again() {
  std::vector<std::int64_t> again = state.cache->lengths();
  count_amount(Amount::recomputed_tokens, std::accumulate(again.begin(), again.end(), std::int64_t{0}));
  std::vector<std::int64_t> added;
  for (std::size_t row = 0; row < again.size(); ++row) {
    state.cache->truncate(static_cast<std::int64_t>(row), 0);
    added.push_back(std::ssize(state.fed->values[row]));
  }
  StepRows step_rows = rows(std::move(added));
  at::Tensor ids =
      padded_ids(state.fed->values, step_rows.tokens(), model().config.vocabulary_size).to(step_rows.device());
  return {.ids = std::move(ids), .rows = std::move(step_rows), .again = std::move(again)};
}

/// Lets the encoder read the prompts, and returns what the decoder begins with: one token a row.
Session::Impl::Feed Session::Impl::encode(const at::Tensor& ids, StepRows& prompts) {
  if (state.encoded) {
    throw std::logic_error("an encoder has read the prompts of this session already: it reads them once");
  }
  if (!prompts.all_add()) {
    throw std::invalid_argument("an encoder reads one prompt a row, and none of them is empty");
  }
  prompts.see_all_keys();
  const std::int64_t start = model().config.encoder->start_token_id;
  const at::Tensor first = at::full({batch_size(), 1}, start, ids.options());
  if (state.history) {
    state.history->add(first, state.cache->lengths());
  }
  workspace->begin_step(false);
  state.encoded = engine.transformer->encode(prompts.packed(ids), *engine.prefill_attention, step_of(prompts));
  return {.ids = first, .rows = rows(ones(batch_size()))};
}

StepRows Session::Impl::begin_decode() {
  if (!state.next_ids.value.defined()) {
    throw std::logic_error("decode() needs a prefill(), choose() or force_tokens() before it");
  }
  if (state.history) {
    state.history->add(state.next_ids.value, state.cache->lengths());
  }
  return in_stage(Stage::host, [&] { return rows(ones(batch_size())); });
}

/// Sets last_logits. Returns the logits of all positions, [B, T, V], where they were computed.
std::optional<at::Tensor> Session::Impl::fed_logits(const at::Tensor& ids, const StepRows& rows) {
  const Transformer& transformer = *engine.transformer;
  const Attention& attention = state.encoded ? *engine.decode_attention : *engine.prefill_attention;
  at::Tensor& last = state.last_logits.value;
  const at::Tensor hidden =  // [B * T, d] or [S, d]
      decodelab::forward(transformer, attention, *state.cache, rows.packed(ids), step_of(rows)).flatten(0, 1);
  if (rows.tokens() == 1) {
    last = transformer.head(hidden, *workspace);
    return last.unsqueeze(1);
  }
  if (!engine.lm_head_rows->all_positions(details)) {
    last = transformer.head(hidden.index_select(0, rows.last_token_index()), *workspace);
    return std::nullopt;
  }
  const at::Tensor logits = transformer.head(hidden, *workspace);
  last = logits.index_select(0, rows.last_token_index());
  return rows.padded(logits.unsqueeze(0)).view({rows.batch_size(), rows.tokens(), -1});
}

void Session::Impl::feed(const Feed& fed) {
  const auto& [ids, rows, again] = fed;
  workspace->begin_step(false);
  const bool continues =
      !rows.all_add() || std::ranges::any_of(rows.past(), [](std::int64_t held) { return held != 0; });
  // A workspace may write the new logits over the old ones.
  const at::Tensor before =
      continues && state.last_logits.value.defined() ? state.last_logits.value.clone() : at::Tensor();
  const std::optional<at::Tensor> all_logits = fed_logits(ids, rows);
  if (before.defined() && !rows.all_add()) {
    at::Tensor adds = at::tensor(rows.added(), at::kLong).to(before.device()).gt(0).unsqueeze(1);
    state.last_logits.value = at::where(adds, state.last_logits.value, before);
  }
  const bool logs = engine.token_details->effective(details).prefill_log_probs;
  if (all_logits && logs && !state.encoded) {
    const Range range(Stage::details);
    const FedTokens logits{.all_logits = *all_logits, .logits_before = before, .ids = ids, .rows = rows};
    for (std::int64_t row = 0; row < batch_size(); ++row) {
      const std::vector<float> of_row = fed_log_probs(logits, row);
      // The first token has none, and those that were fed before have been returned.
      const std::ptrdiff_t known =
          again.empty() ? 0 : std::max<std::int64_t>(again[static_cast<std::size_t>(row)] - 1, 0);
      std::vector<float>& all = state.prompt_log_probs.values[static_cast<std::size_t>(row)];
      all.insert(all.end(), of_row.begin() + known, of_row.end());
    }
  }
  in_stage(Stage::host, [&] { state.cache->advance(rows); });
  prepare_steps();
  state.next_ids.value.reset();
}

void Session::Impl::decode_forward() {
  const StepRows rows = begin_decode();
  if (state.fed) {
    state.cache->check_room(rows);
    const at::Tensor next = state.next_ids.value.to(at::kCPU);
    for (std::size_t row = 0; row < state.fed->values.size(); ++row) {
      state.fed->values[row].push_back(next.const_data_ptr<std::int64_t>()[row]);
    }
    const Feed all = all_tokens_again();
    workspace->begin_step(false);
    fed_logits(all.ids, all.rows);
    in_stage(Stage::host, [&] { state.cache->advance(all.rows); });
    return;
  }
  workspace->begin_step(true);
  state.last_logits.value = runner->decode({.ids = state.next_ids.value,
                                            .rows = rows,
                                            .cache = *state.cache,
                                            .workspace = *workspace,
                                            .encoded = state.encoded.get()});
  in_stage(Stage::host, [&] { state.cache->advance(rows); });
}

void Session::Impl::choose() {
  const at::Tensor& logits = state.last_logits.value;
  ChosenTokens chosen = in_stage(Stage::choice, [&] {
    return state.choice->choose(state.masks ? state.masks->apply(logits) : logits, state.history.get(), *workspace);
  });
  state.next_ids.value = std::move(chosen.device);
  unread = std::move(chosen.host);
  unread_details.clear();
  if (state.masks) {
    // The masks of the next step depend on the tokens of this one, which the host therefore waits for.
    std::vector<std::int64_t> token_ids = unread.read();
    state.masks->take(token_ids, state.cache->lengths());
    unread_exhausted = state.masks->exhausted();
    unread = HostTokens(std::move(token_ids));
  }
  const DetailsRequest wanted = engine.token_details->effective(details);
  if (!wanted.any()) {
    return;
  }
  const Range range(Stage::details);
  std::vector<std::int64_t> token_ids = unread.read();
  unread_details = compute_token_details(logits, token_ids, wanted);
  for (std::size_t row = 0; row < token_ids.size(); ++row) {
    unread_details[row].prefill_log_probs = std::exchange(state.prompt_log_probs.values[row], {});
  }
  unread = HostTokens(std::move(token_ids));
}

StepResult Session::Impl::read() {
  return {.token_ids = unread.read(),
          .details = std::exchange(unread_details, {}),
          .exhausted = std::exchange(unread_exhausted, {})};
}

Session::Session(const Engine& engine, const SessionOptions& options) {
  const c10::InferenceMode inference;
  const std::int64_t positions = engine.model().config().positions;
  if (options.batch_size < 1) {
    throw std::invalid_argument(fmt::format("a session needs a batch of at least 1 row, got {}", options.batch_size));
  }
  if (options.max_tokens < 1 || options.max_tokens > positions) {
    throw std::invalid_argument(fmt::format("a session for {} tokens does not fit the model, which has {} positions",
                                            options.max_tokens, positions));
  }
  impl_ = std::make_unique<Impl>(engine.impl(), options);
}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

StepResult Session::prefill(std::span<const std::vector<std::int64_t>> prompts) {
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    if (prompts[row].empty()) {
      throw std::invalid_argument(fmt::format("prompt {} is empty: a prompt needs at least one token", row + 1));
    }
  }
  if (std::ranges::any_of(impl_->state.cache->lengths(), [](std::int64_t length) { return length != 0; })) {
    throw std::logic_error("prefill() starts at position 0 and needs a fresh session; extend() goes on");
  }
  extend(prompts);
  return choose();
}

void Session::extend(std::span<const std::vector<std::int64_t>> tokens) {
  const c10::InferenceMode inference;
  impl_->refuse_unread("extend()");
  impl_->feed(impl_->begin_tokens(tokens));
}

StepResult Session::choose() {
  const c10::InferenceMode inference;
  impl_->refuse_unread("choose()");
  if (!impl_->state.last_logits.value.defined() || std::ranges::min(impl_->state.cache->lengths()) == 0) {
    throw std::logic_error("choose() needs a step of all rows before it, whose logits it chooses from");
  }
  impl_->choose();
  return impl_->read();
}

StepResult Session::decode() {
  const c10::InferenceMode inference;
  impl_->refuse_unread("decode()");
  impl_->decode_forward();
  impl_->choose();
  return impl_->read();
}

StepResult Session::decode_ahead() {
  const c10::InferenceMode inference;
  const bool late = !impl_->unread.empty();
  HostTokens before = std::exchange(impl_->unread, {});
  StepResult result{.token_ids = {},
                    .details = std::exchange(impl_->unread_details, {}),
                    .exhausted = std::exchange(impl_->unread_exhausted, {})};
  impl_->decode_forward();
  impl_->choose();
  if (late) {
    count_amount(Amount::late_reads, 1);
  }
  result.token_ids = before.read();
  return result;
}

void Session::start_step() {
  const c10::InferenceMode inference;
  impl_->decode_forward();
  impl_->choose();
}

StepResult Session::read_last() { return impl_->read(); }

void Session::forward() {
  const c10::InferenceMode inference;
  impl_->decode_forward();
}

void Session::force_tokens(std::span<const std::int64_t> token_ids) {
  const c10::InferenceMode inference;
  if (std::ssize(token_ids) != impl_->batch_size()) {
    throw std::invalid_argument(
        fmt::format("the session has {} rows, but {} tokens came", impl_->batch_size(), token_ids.size()));
  }
  impl_->state.next_ids.value = at::tensor(at::ArrayRef<std::int64_t>(token_ids.data(), token_ids.size()), at::kLong)
                                    .unsqueeze(1)
                                    .to(impl_->model().device);
  if (impl_->state.masks) {
    impl_->state.masks->take(token_ids, impl_->state.cache->lengths());
  }
}

void Session::begin_rules() {
  if (impl_->state.masks) {
    impl_->state.masks->begin();
  }
}

std::vector<float> Session::last_logits() const {
  const c10::InferenceMode inference;
  const at::Tensor& last = impl_->state.last_logits.value;
  if (!last.defined()) {
    throw std::logic_error("last_logits() needs a prefill() or decode() of all rows before it");
  }
  const at::Tensor logits = last.to(at::kCPU, at::kFloat).contiguous();
  return {logits.const_data_ptr<float>(), logits.const_data_ptr<float>() + logits.numel()};
}

const std::vector<float>& Session::prompt_log_probs(std::int64_t row) const {
  return impl_->state.prompt_log_probs.values.at(static_cast<std::size_t>(row));
}

std::vector<std::int64_t> Session::lengths() const { return impl_->state.cache->lengths(); }
std::int64_t Session::cache_bytes() const {
  return impl_->state.cache->bytes() + (impl_->state.encoded ? impl_->state.encoded->bytes() : 0);
}

}  // namespace decodelab
