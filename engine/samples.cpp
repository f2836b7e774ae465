// Prefills a prompt for each of its samples, or once for all.
#include "engine/samples.h"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/select_rows.h"
#include "engine/sequences/batch_state.h"

namespace decodelab {
namespace {

/// Feeds the rows of a fresh session their prompts.
void feed(Session& session, std::span<const std::vector<std::int64_t>> prompts, PrefixStore* prefixes,
          const std::vector<DetailsRequest>& details) {
  if (prefixes == nullptr) {
    session.extend(prompts);
    return;
  }
  std::vector<HeldPrefix> held;
  std::vector<std::vector<std::int64_t>> rest;
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    held.push_back(prefix_for(*prefixes, prompts[row], details[row]));
    rest.emplace_back(prompts[row].begin() + std::ssize(held.back().tokens), prompts[row].end());
  }
  session.begin_with(held);
  session.extend(rest);
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    prefixes->insert(prompts[row], session, static_cast<std::int64_t>(row));
  }
}

}  // namespace

HeldPrefix prefix_for(PrefixStore& store, std::span<const std::int64_t> prompt, const DetailsRequest& details) {
  TokenRequest beyond = details.prompt;
  beyond.log_prob = false;
  return beyond.any() ? HeldPrefix{} : store.match(prompt, details.prompt.log_prob);
}

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
  options.details = one_for_each_row(options.details, prompts.size(), "requests for details", "prompts");
  if (samples == 1) {
    Session session(engine, options);
    feed(session, prompts, prefixes, options.details);
    return session;
  }
  std::vector<std::int64_t> parents;
  std::vector<std::uint64_t> seeds;
  SessionOptions of_rows = options;
  of_rows.batch_size = options.batch_size * samples;
  of_rows.sampling.clear();
  of_rows.rules.clear();
  of_rows.details.clear();
  std::vector<std::vector<std::int64_t>> rows;
  for (std::size_t prompt = 0; prompt < prompts.size(); ++prompt) {
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      SamplingParameters sampling = options.sampling[prompt];
      sampling.seed = sample_seed(sampling, samples, sample);
      parents.push_back(static_cast<std::int64_t>(prompt));
      seeds.push_back(sampling.seed.value_or(0));  // Greedy rows draw nothing.
      of_rows.sampling.push_back(sampling);
      of_rows.details.push_back(options.details[prompt]);
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
    feed(session, prompts, prefixes, options.details);
    session.fork(parents, seeds);
    return session;
  }
  if (options.rules.size() == 1) {
    of_rows.rules = options.rules;
  }
  Session session(engine, of_rows);
  feed(session, rows, prefixes, of_rows.details);
  return session;
}

}  // namespace decodelab
