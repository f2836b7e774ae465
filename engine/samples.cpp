// Prefills a prompt for each of its samples, or once for all.
#include "engine/samples.h"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "engine/sequences/batch_state.h"

namespace decodelab {
namespace {

/// Feeds the rows of a fresh session their prompts.
void feed(Session& session, std::span<const std::vector<std::int64_t>> prompts, PrefixStore* prefixes, bool log_probs) {
  if (prefixes == nullptr) {
    session.extend(prompts);
    return;
  }
  std::vector<HeldPrefix> held;
  std::vector<std::vector<std::int64_t>> rest;
  for (const std::vector<std::int64_t>& prompt : prompts) {
    held.push_back(prefixes->match(prompt, log_probs));
    rest.emplace_back(prompt.begin() + std::ssize(held.back().tokens), prompt.end());
  }
  session.begin_with(held);
  session.extend(rest);
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    prefixes->insert(prompts[row], session, static_cast<std::int64_t>(row));
  }
}

}  // namespace

std::optional<std::uint64_t> sample_seed(const SamplingParameters& row, std::int64_t samples, std::int64_t index) {
  return samples > 1 && row.seed ? fork_seed(*row.seed, static_cast<std::uint64_t>(index)) : row.seed;
}

Session begin_samples(const Engine& engine, SessionOptions options, std::span<const std::vector<std::int64_t>> prompts,
                      std::int64_t samples, PrefixStore* prefixes) {
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    if (prompts[row].empty()) {
      throw std::invalid_argument(fmt::format("prompt {} is empty: a prompt needs at least one token", row + 1));
    }
  }
  options.sampling = complete_sampling(options.sampling, std::ssize(prompts));
  if (samples == 1) {
    Session session(engine, options);
    feed(session, prompts, prefixes, options.details.prefill_log_probs);
    return session;
  }
  std::vector<std::int64_t> parents;
  std::vector<std::uint64_t> seeds;
  SessionOptions of_rows = options;
  of_rows.batch_size = options.batch_size * samples;
  of_rows.sampling.clear();
  of_rows.rules.clear();
  std::vector<std::vector<std::int64_t>> rows;
  for (std::size_t prompt = 0; prompt < prompts.size(); ++prompt) {
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      SamplingParameters sampling = options.sampling[prompt];
      sampling.seed = sample_seed(sampling, samples, sample);
      parents.push_back(static_cast<std::int64_t>(prompt));
      seeds.push_back(sampling.seed.value_or(0));  // Greedy rows draw nothing.
      of_rows.sampling.push_back(sampling);
      if (options.rules.size() > 1) {
        of_rows.rules.push_back(options.rules[prompt]);
      }
      if (!engine.forks()) {
        rows.push_back(prompts[prompt]);
      }
    }
  }
  if (engine.forks()) {
    Session session(engine, options);
    feed(session, prompts, prefixes, options.details.prefill_log_probs);
    session.fork(parents, seeds);
    return session;
  }
  if (options.rules.size() == 1) {
    of_rows.rules = options.rules;
  }
  Session session(engine, of_rows);
  feed(session, rows, prefixes, options.details.prefill_log_probs);
  return session;
}

}  // namespace decodelab
