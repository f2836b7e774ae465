// What happens to the rows of a session between steps: they are filled, cut, forked, and move between batches.
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "engine/checkpoint/rank_part.h"
#include "engine/checkpoint/synthetic.h"
#include "engine/kernels/elementwise/random_fill.h"
#include "engine/kernels/scalar_type.h"
#include "engine/session_impl.h"
#include "profiles/range.h"

namespace decodelab {
namespace {

/// Brings the keys and values of prefixes into a fresh cache: [B, longest, W] in each layer, copied.
void copy_prefixes(KvCache& cache, std::span<const HeldPrefix> prefixes, const StepRows& rows,
                   const std::function<const at::Tensor&(const FilledCache&, std::int64_t)>& layer_of) {
  const KvCacheOptions& options = cache.options();
  const auto like = at::TensorOptions(scalar_type(options.dtype)).device(at::Device(options.device));
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    const at::Tensor all = at::zeros({options.batch_size, rows.tokens(), options.width}, like);
    for (std::size_t row = 0; row < prefixes.size(); ++row) {
      std::int64_t at = 0;
      for (const std::shared_ptr<const FilledCache>& piece : prefixes[row].pieces) {
        const at::Tensor& held = layer_of(*piece, layer);
        all.narrow(0, static_cast<std::int64_t>(row), 1).narrow(1, at, held.size(1)).copy_(held);
        at += held.size(1);
      }
    }
    cache.append(layer, rows.packed(all), rows);
  }
}

}  // namespace

void Session::fill_random(std::int64_t length, std::uint64_t seed, std::int64_t decoder_tokens) {
  const c10::InferenceMode inference;
  impl_->refuse_without_cache("fill_random()");
  const KvCacheOptions& options = impl_->state.cache->options();
  const ModelConfig& whole = impl_->engine.whole->config();
  // Each rank draws the numbers of all heads, and keeps its own.
  const auto random = [&](std::int64_t tokens, std::string_view name, std::int64_t layer) {
    at::Tensor all = random_uniform({options.batch_size, tokens, whole.kv_width()}, seed,
                                    synthetic_stream(fmt::format("{}.{}", name, layer)), options.device)
                         .to(scalar_type(options.dtype));
    if (!impl_->engine.part) {
      return all;
    }
    std::vector<at::Tensor> parts;
    for (const IndexRange& range : kv_cut(whole, *impl_->engine.part).ranges) {
      parts.push_back(all.narrow(2, range.first, range.count));
    }
    return at::cat(parts, 2);
  };
  if (impl_->state.other_ranks) {
    impl_->state.other_ranks->fill_random(length, seed, decoder_tokens);
  }
  if (impl_->model().config.encoder) {
    std::vector<at::Tensor> layers;
    for (std::int64_t layer = 0; layer < options.layers; ++layer) {
      layers.push_back(random(length, "encoded", layer));
    }
    impl_->state.encoded = std::make_unique<EncodedPrompts>(
        std::move(layers), std::vector<std::int64_t>(static_cast<std::size_t>(options.batch_size), length));
  }
  const std::int64_t held = impl_->model().config.encoder ? decoder_tokens : length;
  const StepRows rows = impl_->rows_of_one_length(held);
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    impl_->state.cache->append(layer, random(held, "kv", layer), rows);
  }
  impl_->state.cache->advance(rows);
  impl_->tell_unknown(held);
  impl_->prepare_steps();
}

FilledCache Session::filled() const {
  const c10::InferenceMode inference;
  impl_->refuse_without_cache("filled()");
  FilledCache filled;
  for (std::int64_t layer = 0; layer < impl_->state.cache->options().layers; ++layer) {
    filled.impl_->layers.push_back(impl_->state.cache->copy_of(layer));
  }
  if (impl_->state.other_ranks) {
    filled.impl_->of_other_ranks = impl_->state.other_ranks->keep();
  }
  if (impl_->state.encoded) {
    for (const at::Tensor& layer : impl_->state.encoded->layers()) {
      filled.impl_->layers.push_back(layer.clone());
    }
  }
  return filled;
}

void Session::fill(const FilledCache& filled, std::span<const std::vector<std::int64_t>> tokens) {
  const c10::InferenceMode inference;
  impl_->refuse_without_cache("fill()");
  const std::vector<at::Tensor>& layers = filled.impl_->layers;
  const KvCacheOptions& options = impl_->state.cache->options();
  const bool encodes = impl_->model().config.encoder.has_value();
  if (std::ssize(layers) != (encodes ? 2 : 1) * options.layers || layers.front().size(0) != options.batch_size) {
    throw std::invalid_argument("a session is filled with the keys and values of as many layers and rows as it has");
  }
  if (impl_->state.other_ranks) {
    if (!filled.impl_->of_other_ranks) {
      throw std::invalid_argument("the model is shared by ranks, and these keys and values are not of all of them");
    }
    impl_->state.other_ranks->fill(*filled.impl_->of_other_ranks);
  }
  if (encodes) {
    const std::vector<at::Tensor> prompts(layers.begin() + options.layers, layers.end());
    impl_->state.encoded = std::make_unique<EncodedPrompts>(
        prompts, std::vector<std::int64_t>(static_cast<std::size_t>(options.batch_size), prompts.front().size(1)));
  }
  const std::int64_t length = layers.front().size(1);
  const StepRows rows = impl_->rows_of_one_length(length);
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    // A cache may keep what it is given.
    impl_->state.cache->append(layer, layers[static_cast<std::size_t>(layer)].clone(), rows);
  }
  impl_->state.cache->advance(rows);
  if (tokens.empty() || encodes) {
    impl_->tell_unknown(length);
  } else {
    impl_->tell_proposer(tokens);
  }
  impl_->prepare_steps();
}

FilledCache Session::held(std::int64_t row, std::int64_t begin, std::int64_t end) const {
  const c10::InferenceMode inference;
  impl_->refuse_without_cache("held()");
  impl_->refuse_on_ranks("held()");
  FilledCache filled;
  if (impl_->engine.prefix_reuse == PrefixReuse::shared) {
    impl_->state.cache->check_held(row, begin, end);
    filled.impl_->pages = impl_->shared_pages().share(row, begin, end);
    return filled;
  }
  for (std::int64_t layer = 0; layer < impl_->state.cache->options().layers; ++layer) {
    filled.impl_->layers.push_back(impl_->state.cache->copy_of(layer, row, begin, end));
  }
  return filled;
}

void Session::begin_with(std::span<const HeldPrefix> prefixes) {
  const c10::InferenceMode inference;
  impl_->refuse_without_cache("begin_with()");
  impl_->refuse_on_ranks("begin_with()");
  KvCache& cache = *impl_->state.cache;
  const KvCacheOptions& options = cache.options();
  if (std::ssize(prefixes) != options.batch_size) {
    throw std::invalid_argument(
        fmt::format("the session has {} rows, but {} prefixes came", options.batch_size, prefixes.size()));
  }
  if (impl_->model().config.encoder || std::ranges::max(cache.lengths()) > 0) {
    throw std::logic_error("begin_with() needs a fresh session of a decoder alone");
  }
  std::vector<std::int64_t> lengths;
  std::vector<std::vector<std::int64_t>> tokens;
  for (const HeldPrefix& prefix : prefixes) {
    lengths.push_back(std::ssize(prefix.tokens));
    tokens.push_back(prefix.tokens);
  }
  const std::int64_t longest = std::ranges::max(lengths);
  if (longest == 0) {
    return;
  }
  const StepRows rows = impl_->rows(lengths);
  cache.check_room(rows);
  if (impl_->state.history) {
    impl_->state.history->add(tokens, cache.lengths());
  }
  impl_->tell_proposer(tokens);
  for (std::size_t row = 0; row < prefixes.size(); ++row) {
    for (const float log_prob : prefixes[row].log_probs) {
      impl_->state.prompt_details.values[row].push_back({.log_prob = log_prob});
    }
  }
  if (impl_->engine.prefix_reuse == PrefixReuse::shared) {
    for (std::size_t row = 0; row < prefixes.size(); ++row) {
      std::vector<const SharedPages*> pieces;
      for (const std::shared_ptr<const FilledCache>& piece : prefixes[row].pieces) {
        pieces.push_back(&piece->impl_->pages);
      }
      count_amount(Amount::prefix_pages,
                   impl_->shared_pages().adopt(static_cast<std::int64_t>(row), pieces, lengths[row]));
    }
  } else {
    copy_prefixes(cache, prefixes, rows, [](const FilledCache& piece, std::int64_t layer) -> const at::Tensor& {
      return piece.impl_->layers.at(static_cast<std::size_t>(layer));
    });
  }
  cache.advance(rows);
  impl_->prepare_steps();
  count_amount(Amount::prefix_tokens, std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}));
}

void Session::truncate(std::int64_t length) {
  for (std::int64_t row = 0; row < impl_->batch_size(); ++row) {
    truncate(row, length);
  }
  impl_->state.cache->shrink();
  if (impl_->state.other_ranks) {
    impl_->state.other_ranks->shrink(length);
  }
}

void Session::truncate(std::int64_t row, std::int64_t length) {
  const c10::InferenceMode inference;
  if (row < 0 || row >= impl_->batch_size()) {
    throw std::invalid_argument(
        fmt::format("there is no row {} to cut: the batch has the rows 0 to {}", row, impl_->batch_size() - 1));
  }
  impl_->unread = {};  // of steps that are taken back
  impl_->state.truncate(row, length);
}

void Session::filter(std::span<const std::int64_t> kept) {
  const c10::InferenceMode inference;
  impl_->refuse_unread("filter()");
  const std::vector<std::int64_t> rows(kept.begin(), kept.end());
  for (auto row = rows.begin(); row != rows.end(); ++row) {
    if (std::find(rows.begin(), row, *row) != row) {
      throw std::invalid_argument(fmt::format(
          "filter() keeps row {} once, and it is named twice: fork() continues a row more than once", *row));
    }
  }
  impl_->state.select(rows);
  impl_->renew_steps();
}

void Session::fork(std::span<const std::int64_t> parents, std::span<const std::uint64_t> seeds) {
  const c10::InferenceMode inference;
  impl_->refuse_unread("fork()");
  if (!seeds.empty() && seeds.size() != parents.size()) {
    throw std::invalid_argument(
        fmt::format("fork() makes {} rows, but {} seeds came: one for each, or none", parents.size(), seeds.size()));
  }
  count_amount(Amount::forked_rows, std::ssize(parents));
  impl_->state.select({parents.begin(), parents.end()});
  std::map<std::int64_t, std::uint64_t> samples;  // Of each parent, so far.
  std::vector<SamplingParameters>& sampling = impl_->state.sampling.values;
  for (std::size_t row = 0; row < parents.size(); ++row) {
    const std::uint64_t index = samples[parents[row]]++;
    if (sampling[row].sample) {
      sampling[row].seed = seeds.empty() ? fork_seed(sampling[row].seed.value(), index) : seeds[row];
    }
  }
  impl_->renew_choice();
  impl_->renew_steps();
}

void Session::Impl::make_alike(Impl& other, const char* what) {
  if (this == &other || &engine != &other.engine) {
    throw std::invalid_argument("a session takes the rows of another session of the same engine only");
  }
  refuse_unread(what);
  other.refuse_unread(what);
  if (text == nullptr) {
    text = std::move(other.text);
  }
  if (!state.next_ids.value.defined() || !other.state.next_ids.value.defined()) {
    throw std::logic_error(fmt::format("{} needs a prefill() or force_tokens() in both sessions before it", what));
  }
  if (state.history || other.state.history) {
    for (Impl* side : {this, &other}) {
      if (!side->state.history) {
        side->state.history = side->new_history();  // Of rows whose penalty is neutral: their tokens do not matter.
      }
    }
  }
  if (state.masks || other.state.masks) {
    for (Impl* side : {this, &other}) {
      if (!side->state.masks) {
        side->state.masks = std::make_unique<RowMasks>(side->batch_size(), side->model().config.vocabulary_size);
      }
    }
  }
}

void Session::concatenate(Session&& other) {
  const c10::InferenceMode inference;
  impl_->make_alike(*other.impl_, "concatenate()");
  impl_->joins = false;
  impl_->state.append(other.impl_->state);
  impl_->renew_steps();
  other.impl_.reset();
}

void Session::put(std::span<const std::int64_t> places, Session&& other) {
  const c10::InferenceMode inference;
  const std::vector<std::int64_t> rows(places.begin(), places.end());
  const std::set<std::int64_t> distinct(rows.begin(), rows.end());
  if (std::ssize(distinct) != other.impl_->batch_size() || rows.size() != distinct.size() || *distinct.begin() < 0 ||
      *distinct.rbegin() >= impl_->batch_size()) {
    throw std::invalid_argument(fmt::format("put() takes {} rows into as many of {}, each named once; got {}",
                                            other.impl_->batch_size(), impl_->batch_size(), rows.size()));
  }
  impl_->make_alike(*other.impl_, "put()");
  impl_->joins = false;
  impl_->state.put(rows, other.impl_->state);
  impl_->prepare_steps();
  other.impl_.reset();
}

void Session::pad(std::int64_t rows) {
  const c10::InferenceMode inference;
  impl_->refuse_unread("pad()");
  if (rows < impl_->batch_size()) {
    throw std::invalid_argument(
        fmt::format("pad() adds rows: {} are fewer than the {} of the session", rows, impl_->batch_size()));
  }
  impl_->joins = false;
  if (rows == impl_->batch_size()) {
    impl_->prepare_steps();
    return;
  }
  std::vector<std::int64_t> all(static_cast<std::size_t>(rows), impl_->batch_size() - 1);
  std::iota(all.begin(), all.begin() + impl_->batch_size(), std::int64_t{0});
  impl_->state.select(all);
  impl_->renew_steps();
}

}  // namespace decodelab
