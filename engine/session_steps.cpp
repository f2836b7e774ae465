// The steps of a session: tokens go through the layers, the next ones are chosen, and their details follow.
#include <algorithm>
#include <iterator>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

#include "engine/sampling/token_choice.h"
#include "engine/session_impl.h"
#include "profiles/range.h"

namespace decodelab {
namespace {

std::vector<std::int64_t> ones(std::int64_t count) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(count), 1);
}

/// Adds the texts of the tokens that rows chose, and of the most probable ones.
void add_texts(StepResult& step, const std::vector<bool>& wanted, const TokenText& text) {
  std::vector<std::vector<std::int64_t>> ids(step.details.size());
  std::vector<std::vector<std::string*>> places(step.details.size());
  const auto add = [&](std::size_t row, std::int64_t id, std::string& place) {
    ids[row].push_back(id);
    places[row].push_back(&place);
  };
  for (std::size_t row = 0; row < ids.size(); ++row) {
    if (!wanted[row]) {
      continue;
    }
    RowDetails& details = step.details[row];
    for (TokenDetails& of_prompt : details.prompt) {
      for (TopToken& top : of_prompt.top) {
        add(row, top.id, top.text);
      }
    }
    if (!details.token.top.empty()) {
      add(row, step.token_ids[row], details.token.text);
    }
    for (TopToken& top : details.token.top) {
      add(row, top.id, top.text);
    }
  }
  std::vector<std::vector<std::string>> texts = text.texts(ids);
  for (std::size_t row = 0; row < ids.size(); ++row) {
    for (std::size_t token = 0; token < ids[row].size(); ++token) {
      *places[row][token] = std::move(texts[row][token]);
    }
  }
}

}  // namespace

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

void Session::Impl::tell_proposer(std::span<const std::vector<std::int64_t>> tokens) {
  if (state.proposer) {
    for (std::size_t row = 0; row < tokens.size(); ++row) {
      state.proposer->add(static_cast<std::int64_t>(row), tokens[row]);
    }
  }
}

void Session::Impl::tell_unknown(std::int64_t tokens) {
  if (state.proposer) {
    tell_proposer(std::vector(static_cast<std::size_t>(batch_size()),
                              std::vector<std::int64_t>(static_cast<std::size_t>(tokens), 0)));
  }
}

void Session::Impl::tell_next() {
  if (state.proposer) {
    const std::vector<std::int64_t> next = next_tokens();
    for (std::size_t row = 0; row < next.size(); ++row) {
      state.proposer->add(static_cast<std::int64_t>(row), {&next[row], 1});
    }
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
    return encode(tokens, ids, step_rows);
  }
  state.cache->check_room(step_rows);
  if (state.other_ranks) {
    state.other_ranks->feed(tokens);
  }
  if (state.history) {
    state.history->add({tokens.begin(), tokens.end()}, state.cache->lengths());
  }
  tell_proposer(tokens);
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
Session::Impl::Feed Session::Impl::encode(std::span<const std::vector<std::int64_t>> tokens, const at::Tensor& ids,
                                          StepRows& prompts) {
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
  if (state.other_ranks) {
    state.other_ranks->feed(tokens);
  }
  workspace->begin_prefill();
  state.encoded = engine.transformer->encode(prompts.packed(ids), *engine.prefill_attention, step_of(prompts));
  return {.ids = first, .rows = rows(ones(batch_size()))};
}

StepRows Session::Impl::begin_decode() {
  refuse_without_next("decode()");
  if (state.history) {
    state.history->add(state.next_ids.value, state.cache->lengths());
  }
  return in_stage(Stage::host, [&] { return rows(ones(batch_size())); });
}

void Session::Impl::set_logits(const Feed& fed, const at::Tensor& logits_before, bool adds_details) {
  const StepRows& rows = fed.rows;
  const Attention& attention = state.encoded ? *engine.decode_attention : *engine.prefill_attention;
  const at::Tensor hidden =  // [B * T, d] or [S, d]
      decodelab::forward(*engine.transformer, attention, *state.cache, rows.packed(fed.ids), step_of(rows))
          .flatten(0, 1);
  const auto last_of = [&](const at::Tensor& positions) {
    return rows.tokens() == 1 ? positions : positions.index_select(0, rows.last_token_index());
  };
  if (engine.proposer.sees_states) {
    state.last_hidden.value = last_of(hidden).clone();  // A workspace may write the next step over it.
  }
  const LmHeadRows& head_rows = *engine.lm_head_rows;
  const bool all = std::ranges::any_of(state.asked.values,
                                       [&](const DetailsRequest& of_row) { return head_rows.all_positions(of_row); });
  if (!all) {
    state.last_logits.value = head(last_of(hidden));
    return;
  }
  if (const std::int64_t piece = head_rows.piece(); piece > 0) {
    if (adds_details) {
      add_prompt_details(fed, logits_before, piece,
                         [&](std::int64_t first, std::int64_t count) { return head(hidden.narrow(0, first, count)); });
    }
    state.last_logits.value = head(last_of(hidden));
    return;
  }
  const at::Tensor logits = head(hidden);
  if (adds_details) {
    add_prompt_details(fed, logits_before, rows.tokens(),
                       [&](std::int64_t first, std::int64_t count) { return logits.narrow(0, first, count); });
  }
  state.last_logits.value = last_of(logits);
}

void Session::Impl::add_prompt_details(
    const Feed& fed, const at::Tensor& logits_before, std::int64_t piece,
    const std::function<at::Tensor(std::int64_t first, std::int64_t count)>& logits_of) {
  const std::vector<std::int64_t> begins = fed.rows.first_token_index();
  for (std::size_t row = 0; row < begins.size(); ++row) {
    const TokenRequest& wanted = state.details.values[row].prompt;
    const std::int64_t added = fed.rows.added()[row];
    if (!wanted.any() || added == 0) {
      continue;
    }
    const Range range(Stage::details);
    const auto index = static_cast<std::int64_t>(row);
    const auto add = [&](const at::Tensor& logits, std::int64_t first) {
      const at::Tensor ids = fed.ids[index].narrow(0, first, logits.size(0)).unsqueeze(1);
      const DetailsTask task{
          .logits = logits,
          .ids = ids,
          .wanted = std::vector<const TokenRequest*>(static_cast<std::size_t>(logits.size(0)), &wanted)};
      std::ranges::move(engine.top_tokens->start(task)(), std::back_inserter(state.prompt_details.values[row]));
    };
    // The first token of all has no details, and those of tokens that were fed before are known.
    const std::int64_t known = fed.again.empty() ? 0 : fed.again[row];
    if (known == 0 && logits_before.defined() && fed.rows.past()[row] > 0) {
      add(logits_before.narrow(0, index, 1), 0);
    }
    for (std::int64_t token = std::max<std::int64_t>(known, 1); token < added; token += piece) {
      add(logits_of(begins[row] + token - 1, std::min(piece, added - token)), token);
    }
  }
}

void Session::Impl::feed(const Feed& fed) {
  const StepRows& rows = fed.rows;
  workspace->begin_prefill();
  const bool continues =
      !rows.all_add() || std::ranges::any_of(rows.past(), [](std::int64_t held) { return held != 0; });
  // A workspace may write the new logits over the old ones.
  const at::Tensor before =
      continues && state.last_logits.value.defined() ? state.last_logits.value.clone() : at::Tensor();
  set_logits(fed, before, !state.encoded && !engine.follows());
  if (before.defined() && !rows.all_add()) {
    at::Tensor adds = at::tensor(rows.added(), at::kLong).to(before.device()).gt(0).unsqueeze(1);
    state.last_logits.value = at::where(adds, state.last_logits.value, before);
    state.last_hidden.value = at::Tensor();
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
    workspace->begin_prefill();
    set_logits(all, {}, false);
    in_stage(Stage::host, [&] { state.cache->advance(all.rows); });
    return;
  }
  if (state.other_ranks) {
    state.cache->check_room(rows);
    state.other_ranks->step(next_tokens());
  }
  workspace->begin_decode();
  state.last_hidden.value = at::Tensor();
  state.last_logits.value = runner->decode({.ids = state.next_ids.value,
                                            .rows = rows,
                                            .cache = *state.cache,
                                            .workspace = *workspace,
                                            .encoded = state.encoded.get()});
  in_stage(Stage::host, [&] { state.cache->advance(rows); });
}

void Session::Impl::decode_step() {
  refuse_without_next("decode()");
  tell_next();
  decode_forward();
}

void Session::Impl::choose() {
  Chosen chosen = choose_from(state.last_logits.value, state.cache->lengths(), nullptr);
  state.next_ids.value = std::move(chosen.ids);
  unread = std::move(chosen.step);
}

Session::Impl::Chosen Session::Impl::choose_from(const at::Tensor& logits, std::span<const std::int64_t> positions,
                                                 const std::vector<std::int64_t>* some, const Chooser& chooser) {
  const std::vector<std::int64_t> rows = some == nullptr ? all_rows() : *some;
  at::Tensor allowed = logits;
  ChosenTokens tokens = in_stage(Stage::choice, [&] {
    if (state.masks) {
      allowed = state.masks->apply(logits, rows);
    }
    return chooser ? chooser(allowed)
                   : state.choice->choose(
                         {.logits = allowed, .history = state.history.get(), .workspace = *workspace, .rows = some});
  });
  Chosen chosen{.ids = std::move(tokens.device), .step = {.tokens = std::move(tokens.host)}};
  if (state.masks) {
    // The masks of the next step depend on the tokens of this one, which the host therefore waits for.
    std::vector<std::int64_t> token_ids = chosen.step.tokens.read();
    state.masks->take(token_ids, positions, rows);
    chosen.step.exhausted = state.masks->exhausted();
    chosen.step.tokens = HostTokens(std::move(token_ids));
  }
  if (std::ranges::any_of(state.details.values, &DetailsRequest::any)) {
    const Range range(Stage::details);
    chosen.step.details = start_details(logits, allowed, chosen.ids, rows);
    for (const std::int64_t index : rows) {
      const auto row = static_cast<std::size_t>(index);
      chosen.step.prompts.push_back(std::exchange(state.prompt_details.values[row], {}));
      chosen.step.texts.push_back(state.details.values[row].text);
    }
  }
  return chosen;
}

PendingDetails Session::Impl::start_details(const at::Tensor& logits, const at::Tensor& allowed, const at::Tensor& ids,
                                            const std::vector<std::int64_t>& rows) {
  std::vector<const TokenRequest*> wanted;
  std::vector<std::uint8_t> processed;
  for (const std::int64_t row : rows) {
    const DetailsRequest& of_row = state.details.values[static_cast<std::size_t>(row)];
    wanted.push_back(&of_row.generated);
    processed.push_back(of_row.processed ? 1 : 0);
  }
  if (std::ranges::none_of(wanted, &TokenRequest::any)) {
    return {};
  }
  if (std::ranges::count(processed, 1) == 0) {
    return engine.top_tokens->start({.logits = logits, .ids = ids, .wanted = std::move(wanted)});
  }
  const at::Tensor scores = processed_logits(allowed, state.history.get(), state.sampling.values, rows);
  const at::Tensor takes = at::tensor(processed, at::kByte).to(logits.device(), at::kBool).unsqueeze(1);
  return engine.top_tokens->start(
      {.logits = at::where(takes, scores, logits.to(at::kFloat)), .ids = ids, .wanted = std::move(wanted)});
}

StepResult UnreadStep::read(const TokenText* text) {
  StepResult result{.token_ids = tokens.read(), .details = {}, .exhausted = std::move(exhausted)};
  std::vector<TokenDetails> of_tokens = details ? details() : std::vector<TokenDetails>(prompts.size());
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    count_amount(Amount::listed_tokens, of_tokens[row].top.empty() ? 0 : 1);
    count_amount(Amount::tied_tokens, of_tokens[row].tied ? 1 : 0);
    result.details.push_back({.token = std::move(of_tokens[row]), .prompt = std::move(prompts[row])});
  }
  if (text != nullptr && std::ranges::find(texts, true) != texts.end()) {
    const Range range(Stage::text);
    add_texts(result, texts, *text);
  }
  return result;
}

}  // namespace decodelab
