// One batch of sequences from prompt to last token: a forward step, the choice, and the details.
#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "base/select_rows.h"
#include "engine/runtime.h"
#include "engine/session_impl.h"
#include "profiles/range.h"

namespace decodelab {
InCall::InCall(const Engine::Impl& engine) {
  if (engine.rank_threads > 0) {
    threads_before_ = threads();
    set_threads(engine.rank_threads);
  }
}

InCall::~InCall() {
  if (threads_before_ > 0) {
    set_threads(threads_before_);
  }
}

Session::Impl::Impl(const Engine::Impl& of, const SessionOptions& asked)
    : engine(of), runner(of.step_runner()), joins(asked.joins), rows_of_steps(asked.batch_size) {
  if (engine.leader) {
    state.other_ranks = engine.leader->open(asked.batch_size, asked.max_tokens);
  }
  const std::int64_t spare_rows = runner->cache_rows(asked.batch_size) - asked.batch_size;
  state.cache = engine.cache(asked.batch_size, asked.max_tokens, spare_rows);
  state.sampling.values = complete_sampling(asked.sampling, asked.batch_size);
  state.asked.values =
      one_for_each_row(asked.details, static_cast<std::size_t>(asked.batch_size), "requests for details", "rows");
  for (const DetailsRequest& of_row : state.asked.values) {
    check_details(of_row, model().config.vocabulary_size);
    state.details.values.push_back(engine.token_details->effective(of_row));
  }
  state.prompt_details.values.resize(static_cast<std::size_t>(asked.batch_size));
  workspace = engine.make_workspace(model().config.positions, model().device);
  renew_choice();
  if (asked.texts != nullptr) {
    text = engine.make_token_text(asked.texts);
  }
  if (!state.cache->keeps()) {
    state.fed = std::make_unique<RowTokens>();
    state.fed->values.resize(static_cast<std::size_t>(asked.batch_size));
  }
  if (engine.proposer.make) {
    state.proposer = engine.proposer.make({.rows = asked.batch_size,
                                           .max_tokens = asked.max_tokens,
                                           .draft = engine.draft.get(),
                                           .apart = engine.draft_apart,
                                           .sampling = state.sampling.values,
                                           .config = &model().config,
                                           .dtype = model().dtype,
                                           .device = model().device,
                                           .logits_of =
                                               [transformer = engine.transformer.get()](const at::Tensor& states) {
                                                 PlainWorkspace workspace;  // The session's may hold other logits.
                                                 return transformer->logits(states, workspace);
                                               },
                                           .draws = engine.acceptance->wants_drawn_guesses()});
    if (engine.make_draft_length) {
      state.draft_length = engine.make_draft_length(asked.batch_size);
    }
  }
  if (state.penalizes()) {
    state.history = new_history();
  }
  if (std::ranges::any_of(asked.rules, &TokenRules::any)) {
    PatternMasks own(engine.make_token_mask, asked.vocabulary);
    state.masks = std::make_unique<RowMasks>(
        one_for_each_row(asked.rules, static_cast<std::size_t>(asked.batch_size), "rules", "rows"),
        asked.masks == nullptr ? own : *asked.masks, model().config.vocabulary_size);
  }
}

StepRows Session::Impl::rows(std::vector<std::int64_t> added) const {
  return rows(std::move(added), engine.prefill_layout);
}

StepRows Session::Impl::rows(std::vector<std::int64_t> added, PrefillLayout layout) const {
  return {state.cache->lengths(),     std::move(added), model().config.positions,
          at::Device(model().device), layout,           workspace->tables()};
}

StepRows Session::Impl::rows_of_one_length(std::int64_t added) const {
  return rows(std::vector<std::int64_t>(static_cast<std::size_t>(batch_size()), added));
}

std::vector<std::int64_t> Session::Impl::all_rows() const {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(batch_size()));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  return rows;
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

void Session::Impl::refuse_without_next(const char* what) const {
  if (!state.next_ids.value.defined()) {
    throw std::logic_error(fmt::format("{} needs a prefill(), choose() or force_tokens() before it", what));
  }
}

std::vector<std::int64_t> Session::Impl::next_tokens() const {
  const at::Tensor next = state.next_ids.value.to(at::kCPU).contiguous();
  return {next.const_data_ptr<std::int64_t>(), next.const_data_ptr<std::int64_t>() + next.numel()};
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

void Session::Impl::refuse_on_ranks(const char* what) const {
  if (state.other_ranks) {
    throw std::logic_error(fmt::format("{} needs a whole model, and this one is shared by ranks", what));
  }
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
  const InCall call(impl_->engine);
  impl_->refuse_unread("extend()");
  impl_->feed(impl_->begin_tokens(tokens));
}

StepResult Session::choose() {
  const InCall call(impl_->engine);
  impl_->refuse_unread("choose()");
  if (!impl_->state.last_logits.value.defined() || std::ranges::min(impl_->state.cache->lengths()) == 0) {
    throw std::logic_error("choose() needs a step of all rows before it, whose logits it chooses from");
  }
  impl_->choose();
  return impl_->read();
}

StepResult Session::decode() {
  const InCall call(impl_->engine);
  impl_->refuse_unread("decode()");
  impl_->decode_step();
  impl_->choose();
  return impl_->read();
}

StepResult Session::decode_ahead() {
  const InCall call(impl_->engine);
  UnreadStep before = std::exchange(impl_->unread, {});
  impl_->decode_step();
  impl_->choose();
  if (!before.empty()) {
    count_amount(Amount::late_reads, 1);
  }
  return before.read(impl_->text.get());
}

void Session::start_step() {
  const InCall call(impl_->engine);
  impl_->decode_step();
  impl_->choose();
}

StepResult Session::read_last() { return impl_->read(); }

void Session::forward() {
  const InCall call(impl_->engine);
  impl_->decode_step();
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
    impl_->state.masks->take(token_ids, impl_->state.cache->lengths(), impl_->all_rows());
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

std::vector<float> Session::prompt_log_probs(std::int64_t row) const {
  std::vector<float> log_probs;
  if (impl_->state.details.values.at(static_cast<std::size_t>(row)).prompt.log_prob) {
    std::ranges::transform(impl_->state.prompt_details.values[static_cast<std::size_t>(row)],
                           std::back_inserter(log_probs), &TokenDetails::log_prob);
  }
  return log_probs;
}

std::vector<std::int64_t> Session::lengths() const { return impl_->state.cache->lengths(); }
std::int64_t Session::cache_bytes() const {
  const BatchState& state = impl_->state;
  return state.cache->bytes() + (state.encoded ? state.encoded->bytes() : 0) +
         (state.proposer ? state.proposer->bytes() : 0);
}

}  // namespace decodelab
