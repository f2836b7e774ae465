// One batch of sequences from prompt to last token: a forward step, the choice, and the details.
#include <algorithm>
#include <iterator>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "base/select_rows.h"
#include "engine/checkpoint/synthetic.h"
#include "engine/engine.h"
#include "engine/engine_impl.h"
#include "engine/kernels/elementwise/random_fill.h"
#include "engine/kernels/scalar_type.h"
#include "engine/layers/encoded_prompts.h"
#include "engine/layers/step_rows.h"
#include "engine/layers/step_tensors.h"
#include "engine/sampling/chosen_tokens.h"
#include "engine/sampling/token_history.h"
#include "engine/tensor.h"
#include "profiles/range.h"

namespace decodelab {
namespace {

std::vector<std::int64_t> ones(std::size_t count) { return std::vector<std::int64_t>(count, 1); }

/// Prompts as one tensor [B, T], each row padded at its end with token 0.
at::Tensor padded_ids(std::span<const std::vector<std::int64_t>> prompts, std::int64_t tokens,
                      std::int64_t vocabulary_size) {
  at::Tensor ids = at::zeros({static_cast<std::int64_t>(prompts.size()), tokens}, at::kLong);
  auto* row = ids.mutable_data_ptr<std::int64_t>();
  for (std::size_t index = 0; index < prompts.size(); ++index, row += tokens) {
    for (const std::int64_t id : prompts[index]) {
      if (id < 0 || id >= vocabulary_size) {
        throw std::invalid_argument(fmt::format("prompt {} has the token id {}, but the vocabulary has the ids 0 to {}",
                                                index + 1, id, vocabulary_size - 1));
      }
    }
    std::ranges::copy(prompts[index], row);
  }
  return ids;
}

}  // namespace

struct Session::Impl {
  const Engine::Impl& engine;
  SessionOptions options;  ///< `sampling` is one a row.
  std::unique_ptr<KvCache> cache;
  std::unique_ptr<Workspace> workspace;
  std::unique_ptr<StepRunner> runner;
  std::unique_ptr<TokenChoice> choice;
  std::unique_ptr<EncodedPrompts> encoded;  ///< Null for a decoder alone, and before the prefill.
  std::optional<TokenHistory> history;      ///< Where a row penalizes repetitions.
  at::Tensor input_ids;                     ///< [B, 1] int64 on the device: what the next decode step is fed.
  at::Tensor last_logits;                   ///< [B, V]
  HostTokens unread;                        ///< What decode_ahead() chose.
  std::vector<TokenDetails> unread_details;

  const Model::Impl& model() const { return engine.model->impl(); }

  StepRows rows(std::vector<std::int64_t> added) const {
    return {cache->lengths(),           std::move(added),      model().config.positions,
            at::Device(model().device), engine.prefill_layout, workspace->tables()};
  }

  bool penalizes() const { return std::ranges::any_of(options.sampling, &SamplingParameters::penalizes); }

  TokenHistory new_history() const {
    return {options.batch_size, model().config.vocabulary_size, at::Device(model().device)};
  }

  /// Begins with new step memory and a new runner: what the old ones hold has the shapes of a batch that is no more.
  void renew_steps() {
    workspace = engine.make_workspace(model().config.positions, model().device);
    runner = engine.step_runner();
    runner->prepare(*cache);
  }

  ForwardStep step_of(const StepRows& rows) const {
    return {.rows = rows, .workspace = *workspace, .encoded = encoded.get()};
  }

  /// Lets the encoder read the prompts, and returns what the decoder begins with: one token a row.
  std::pair<at::Tensor, StepRows> encode(const at::Tensor& ids, StepRows& prompts) {
    prompts.see_all_keys();
    const std::int64_t start = model().config.encoder->start_token_id;
    if (history) {
      history->add(std::vector<std::vector<std::int64_t>>(static_cast<std::size_t>(options.batch_size), {start}));
    }
    workspace->begin_step(false);
    encoded = engine.transformer->encode(prompts.packed(ids), *engine.prefill_attention, step_of(prompts));
    return {at::full({options.batch_size, 1}, start, ids.options()),
            rows(ones(static_cast<std::size_t>(options.batch_size)))};
  }

  /// Sets last_logits. Returns the logits of all positions, [B, T, V], where they were computed.
  std::optional<at::Tensor> prefill_logits(const at::Tensor& ids, const StepRows& rows) {
    const Transformer& transformer = *engine.transformer;
    const Attention& attention = encoded ? *engine.decode_attention : *engine.prefill_attention;
    const at::Tensor hidden =  // [B * T, d] or [S, d]
        decodelab::forward(transformer, attention, *cache, rows.packed(ids), step_of(rows)).flatten(0, 1);
    if (rows.tokens() == 1) {
      last_logits = transformer.head(hidden, *workspace);
      return last_logits.unsqueeze(1);
    }
    if (!engine.lm_head_rows->all_positions(options.details)) {
      last_logits = transformer.head(hidden.index_select(0, rows.last_token_index()), *workspace);
      return std::nullopt;
    }
    const at::Tensor logits = transformer.head(hidden, *workspace);
    last_logits = logits.index_select(0, rows.last_token_index());
    return rows.padded(logits.unsqueeze(0)).view({rows.batch_size(), rows.tokens(), -1});
  }

  std::optional<at::Tensor> decode_logits(const at::Tensor& ids, const StepRows& rows) {
    last_logits =
        runner->decode({.ids = ids, .rows = rows, .cache = *cache, .workspace = *workspace, .encoded = encoded.get()});
    return last_logits.unsqueeze(1);
  }

  /// One step without a choice. Returns what prefill_logits() does.
  std::optional<at::Tensor> forward_step(const at::Tensor& ids, const StepRows& rows, bool prefill) {
    workspace->begin_step(!prefill);
    const std::optional<at::Tensor> all_logits = prefill ? prefill_logits(ids, rows) : decode_logits(ids, rows);
    in_stage(Stage::host, [&] { cache->advance(rows); });
    if (prefill) {
      runner->prepare(*cache);
    }
    return all_logits;
  }

  /// One step. Leaves its tokens and details in `unread`.
  void step(const at::Tensor& ids, const StepRows& rows, bool prefill) {
    const std::optional<at::Tensor> all_logits = forward_step(ids, rows, prefill);
    ChosenTokens chosen =
        in_stage(Stage::choice, [&] { return choice->choose(last_logits, history ? &*history : nullptr, *workspace); });
    input_ids = std::move(chosen.device);
    unread = std::move(chosen.host);
    unread_details.clear();
    const DetailsRequest wanted = engine.token_details->effective(options.details);
    if (wanted.any()) {
      const Range range(Stage::details);
      std::vector<std::int64_t> token_ids = unread.read();
      unread_details = compute_token_details({.last_logits = last_logits,
                                              .all_logits = all_logits ? &*all_logits : nullptr,
                                              .input_ids = ids,
                                              .token_ids = token_ids,
                                              .rows = rows,
                                              .prefill = prefill},
                                             wanted);
      unread = HostTokens(std::move(token_ids));
    }
  }

  StepResult read() { return {.token_ids = unread.read(), .details = std::exchange(unread_details, {})}; }

  void refuse_unread(const char* what) const {
    if (!unread.empty()) {
      throw std::logic_error(fmt::format("{} while tokens are unread: read_last() comes before it", what));
    }
  }

  /// Checks the prompts and brings them to the device: what prefill() and forward() begin with.
  std::pair<at::Tensor, StepRows> begin_prompts(std::span<const std::vector<std::int64_t>> prompts) {
    if (static_cast<std::int64_t>(prompts.size()) != options.batch_size) {
      throw std::invalid_argument(
          fmt::format("the session has {} rows, but {} prompts came", options.batch_size, prompts.size()));
    }
    std::vector<std::int64_t> added;
    for (const auto& prompt : prompts) {
      if (prompt.empty()) {
        throw std::invalid_argument(
            fmt::format("prompt {} is empty: a prompt needs at least one token", added.size() + 1));
      }
      added.push_back(static_cast<std::int64_t>(prompt.size()));
    }
    if (std::ranges::any_of(cache->lengths(), [](std::int64_t length) { return length != 0; })) {
      throw std::logic_error("prefill() starts at position 0 and needs a fresh session");
    }
    StepRows step_rows = rows(std::move(added));
    at::Tensor ids = padded_ids(prompts, step_rows.tokens(), model().config.vocabulary_size).to(step_rows.device());
    if (model().config.encoder) {
      return encode(ids, step_rows);
    }
    if (history) {
      history->add(prompts);
    }
    return {std::move(ids), std::move(step_rows)};
  }

  /// The rows of a decode step, checked: what decode() and forward() begin with.
  StepRows begin_decode() {
    if (!input_ids.defined()) {
      throw std::logic_error("decode() needs a prefill() or force_tokens() before it");
    }
    if (history) {
      history->add(input_ids, cache->lengths());
    }
    return in_stage(Stage::host, [&] { return rows(ones(static_cast<std::size_t>(options.batch_size))); });
  }
};

Session::Session(const Engine& engine, const SessionOptions& options) {
  const c10::InferenceMode inference;
  const Model& model = engine.model();
  const ModelConfig& config = model.config();
  if (options.batch_size < 1) {
    throw std::invalid_argument(fmt::format("a session needs a batch of at least 1 row, got {}", options.batch_size));
  }
  if (options.max_tokens < 1 || options.max_tokens > config.positions) {
    throw std::invalid_argument(fmt::format("a session for {} tokens does not fit the model, which has {} positions",
                                            options.max_tokens, config.positions));
  }
  SessionOptions complete = options;
  complete.sampling = complete_sampling(options.sampling, options.batch_size);
  const ChoiceOptions choosing{.rows = complete.sampling, .device = model.device(), .make_rng = engine.impl().make_rng};
  std::unique_ptr<StepRunner> runner = engine.impl().step_runner();
  const std::int64_t spare_rows = runner->cache_rows(options.batch_size) - options.batch_size;
  impl_ = std::make_unique<Impl>(Impl{.engine = engine.impl(),
                                      .options = std::move(complete),
                                      .cache = engine.impl().cache(options.batch_size, options.max_tokens, spare_rows),
                                      .workspace = engine.impl().make_workspace(config.positions, model.device()),
                                      .runner = std::move(runner),
                                      .choice = engine.impl().make_token_choice(choosing),
                                      .history = {},
                                      .input_ids = {},
                                      .last_logits = {}});
  if (impl_->penalizes()) {
    impl_->history = impl_->new_history();
  }
}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

StepResult Session::prefill(std::span<const std::vector<std::int64_t>> prompts) {
  const c10::InferenceMode inference;
  const auto [ids, rows] = impl_->begin_prompts(prompts);
  impl_->step(ids, rows, true);
  return impl_->read();
}

StepResult Session::decode() {
  const c10::InferenceMode inference;
  impl_->refuse_unread("decode()");
  impl_->step(impl_->input_ids, impl_->begin_decode(), false);
  return impl_->read();
}

StepResult Session::decode_ahead() {
  const c10::InferenceMode inference;
  HostTokens before = std::move(impl_->unread);
  std::vector<TokenDetails> details = std::exchange(impl_->unread_details, {});
  impl_->unread = {};
  impl_->step(impl_->input_ids, impl_->begin_decode(), false);
  if (!before.empty()) {
    count_amount(Amount::late_reads, 1);
  }
  return {.token_ids = before.read(), .details = std::move(details)};
}

void Session::start_step() {
  const c10::InferenceMode inference;
  impl_->step(impl_->input_ids, impl_->begin_decode(), false);
}

StepResult Session::read_last() { return impl_->read(); }

void Session::forward(std::span<const std::vector<std::int64_t>> prompts) {
  const c10::InferenceMode inference;
  const auto [ids, rows] = impl_->begin_prompts(prompts);
  impl_->forward_step(ids, rows, true);
}

void Session::forward() {
  const c10::InferenceMode inference;
  impl_->forward_step(impl_->input_ids, impl_->begin_decode(), false);
}

void Session::force_tokens(std::span<const std::int64_t> token_ids) {
  const c10::InferenceMode inference;
  if (static_cast<std::int64_t>(token_ids.size()) != impl_->options.batch_size) {
    throw std::invalid_argument(
        fmt::format("the session has {} rows, but {} tokens came", impl_->options.batch_size, token_ids.size()));
  }
  impl_->input_ids = at::tensor(at::ArrayRef<std::int64_t>(token_ids.data(), token_ids.size()), at::kLong)
                         .unsqueeze(1)
                         .to(impl_->model().device);
}

void Session::fill_random(std::int64_t length, std::uint64_t seed, std::int64_t decoder_tokens) {
  const c10::InferenceMode inference;
  const KvCacheOptions& options = impl_->cache->options();
  const auto random = [&](std::int64_t tokens, std::string_view name, std::int64_t layer) {
    return random_uniform({options.batch_size, tokens, options.width}, seed,
                          synthetic_stream(fmt::format("{}.{}", name, layer)), options.device)
        .to(scalar_type(options.dtype));
  };
  const auto batch_size = static_cast<std::size_t>(options.batch_size);
  if (impl_->model().config.encoder) {
    std::vector<at::Tensor> layers;
    for (std::int64_t layer = 0; layer < options.layers; ++layer) {
      layers.push_back(random(length, "encoded", layer));
    }
    impl_->encoded = std::make_unique<EncodedPrompts>(std::move(layers), std::vector<std::int64_t>(batch_size, length));
  }
  const std::int64_t held = impl_->model().config.encoder ? decoder_tokens : length;
  const StepRows rows = impl_->rows(std::vector<std::int64_t>(batch_size, held));
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    impl_->cache->append(layer, random(held, "kv", layer), rows);
  }
  impl_->cache->advance(rows);
  impl_->runner->prepare(*impl_->cache);
}

FilledCache Session::filled() const {
  const c10::InferenceMode inference;
  FilledCache filled;
  for (std::int64_t layer = 0; layer < impl_->cache->options().layers; ++layer) {
    filled.impl_->layers.push_back(impl_->cache->copy_of(layer));
  }
  if (impl_->encoded) {
    for (const at::Tensor& layer : impl_->encoded->layers()) {
      filled.impl_->layers.push_back(layer.clone());
    }
  }
  return filled;
}

void Session::fill(const FilledCache& filled) {
  const c10::InferenceMode inference;
  const std::vector<at::Tensor>& layers = filled.impl_->layers;
  const KvCacheOptions& options = impl_->cache->options();
  const bool encodes = impl_->model().config.encoder.has_value();
  if (std::ssize(layers) != (encodes ? 2 : 1) * options.layers || layers.front().size(0) != options.batch_size) {
    throw std::invalid_argument("a session is filled with the keys and values of as many layers and rows as it has");
  }
  if (encodes) {
    const std::vector<at::Tensor> prompts(layers.begin() + options.layers, layers.end());
    impl_->encoded = std::make_unique<EncodedPrompts>(
        prompts, std::vector<std::int64_t>(static_cast<std::size_t>(options.batch_size), prompts.front().size(1)));
  }
  const std::int64_t length = layers.front().size(1);
  const StepRows rows = impl_->rows(std::vector<std::int64_t>(static_cast<std::size_t>(options.batch_size), length));
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    // A cache may keep what it is given.
    impl_->cache->append(layer, layers[static_cast<std::size_t>(layer)].clone(), rows);
  }
  impl_->cache->advance(rows);
  impl_->runner->prepare(*impl_->cache);
}

void Session::truncate(std::int64_t length) {
  const c10::InferenceMode inference;
  impl_->unread = {};  // of steps that are taken back
  for (std::int64_t row = 0; row < impl_->options.batch_size; ++row) {
    impl_->cache->truncate(row, length);
  }
  if (impl_->history) {
    impl_->history->truncate(length);
  }
}

void Session::filter(std::span<const std::int64_t> kept) {
  const c10::InferenceMode inference;
  Impl& mine = *impl_;
  mine.refuse_unread("filter()");
  const std::vector<std::int64_t> rows(kept.begin(), kept.end());
  mine.cache->filter(rows);  // Refuses rows that are not there.
  mine.options.batch_size = mine.cache->options().batch_size;
  mine.options.sampling = select_rows(mine.options.sampling, rows);
  if (mine.encoded) {
    mine.encoded->select(rows);
  }
  mine.choice->select(rows);
  if (!mine.penalizes()) {
    mine.history.reset();
  } else {
    mine.history->select(rows);
  }
  const at::Tensor index = at::tensor(rows, at::kLong).to(at::Device(mine.model().device));
  for (at::Tensor* tensor : {&mine.input_ids, &mine.last_logits}) {
    if (tensor->defined()) {
      *tensor = tensor->index_select(0, index);
    }
  }
  mine.renew_steps();
}

void Session::concatenate(Session&& other) {
  const c10::InferenceMode inference;
  Impl& mine = *impl_;
  Impl& theirs = *other.impl_;
  if (&mine == &theirs || &mine.engine != &theirs.engine) {
    throw std::invalid_argument("a session takes the rows of another session of the same engine only");
  }
  if (mine.options.details != theirs.options.details) {
    throw std::invalid_argument(
        "two sessions that were asked for different details cannot be put together: ask for the same details in both");
  }
  mine.refuse_unread("concatenate()");
  theirs.refuse_unread("concatenate()");
  if (!mine.input_ids.defined() || !theirs.input_ids.defined()) {
    throw std::logic_error("concatenate() needs a prefill() or force_tokens() in both sessions before it");
  }
  mine.cache->concatenate(*theirs.cache);
  mine.choice->append(std::move(*theirs.choice));
  if (mine.encoded) {
    mine.encoded->append(*theirs.encoded);
  }
  if (mine.history || theirs.history) {
    if (!mine.history) {
      mine.history = mine.new_history();  // For rows whose penalty is neutral, so that their tokens do not matter.
    }
    mine.history->append(theirs.history ? std::move(*theirs.history) : theirs.new_history());
  }
  mine.input_ids = at::cat({mine.input_ids, theirs.input_ids});
  mine.last_logits = mine.last_logits.defined() && theirs.last_logits.defined()
                         ? at::cat({mine.last_logits, theirs.last_logits})
                         : at::Tensor();
  mine.options.batch_size = mine.cache->options().batch_size;
  mine.options.max_tokens = mine.cache->options().max_tokens;
  std::ranges::move(theirs.options.sampling, std::back_inserter(mine.options.sampling));
  mine.renew_steps();
  other.impl_.reset();
}

std::vector<float> Session::last_logits() const {
  const c10::InferenceMode inference;
  if (!impl_->last_logits.defined()) {
    throw std::logic_error("last_logits() needs a prefill() or decode() of all rows before it");
  }
  const at::Tensor logits = impl_->last_logits.to(at::kCPU, at::kFloat).contiguous();
  return {logits.const_data_ptr<float>(), logits.const_data_ptr<float>() + logits.numel()};
}

std::vector<std::int64_t> Session::lengths() const { return impl_->cache->lengths(); }
std::int64_t Session::cache_bytes() const {
  return impl_->cache->bytes() + (impl_->encoded ? impl_->encoded->bytes() : 0);
}

}  // namespace decodelab
