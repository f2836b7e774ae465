// From the sampling flags to the parameters of each row.
#include "bench/commands/sampling_options.h"

#include <stdexcept>

#include <fmt/format.h>

namespace decodelab {
namespace {

constexpr const char* kGroup =
    "Sampling (greedy without; each of these flags but --repetition-penalty and --stop turns it on)";

constexpr const char* kRules = "What may come";

}  // namespace

void add_sampling_flags(CLI::App& command, SamplingParameters& parameters) {
  const auto samples = [&parameters](const std::string&) { parameters.sample = true; };
  command.add_flag("--sample", parameters.sample, "Draw tokens at random from the softmax of the logits")
      ->group(kGroup);
  command.add_option("--temperature", parameters.temperature, "Divides the logits; above 0")
      ->capture_default_str()
      ->each(samples)
      ->group(kGroup);
  command.add_option("--top-k", parameters.top_k, "Keep the K likeliest tokens, ties included; 0: all")
      ->capture_default_str()
      ->each(samples)
      ->group(kGroup);
  command.add_option("--top-p", parameters.top_p, "Keep the likeliest tokens that together reach this probability")
      ->capture_default_str()
      ->each(samples)
      ->group(kGroup);
  command
      .add_option("--typical-p", parameters.typical_p,
                  "Keep the tokens nearest to the expected surprise that together reach this probability")
      ->capture_default_str()
      ->each(samples)
      ->group(kGroup);
  command
      .add_option("--repetition-penalty", parameters.repetition_penalty,
                  "Makes tokens of the prompt and the completion less likely above 1, also in greedy decoding")
      ->capture_default_str()
      ->group(kGroup);
}

void add_completion_flags(CLI::App& command, SamplingOptions& options) {
  const auto samples = [&options](const std::string&) { options.all.sample = true; };
  command
      .add_option(
          "--seed", options.seeds,
          "Of the random numbers: one for all rows, or repeat for each row; without it they are drawn, and the json "
          "output tells them")
      ->allow_extra_args(false)
      ->each(samples)
      ->group(kGroup);
  command.add_option("--samples", options.samples, "Completions of each prompt, which is prefilled once")
      ->capture_default_str()
      ->each(samples)
      ->group(kGroup);
  command
      .add_option("--best-of", options.best_of,
                  "Draw so many completions of each prompt, and give those with the highest mean log-probability of "
                  "their tokens")
      ->each(samples)
      ->group(kGroup);
  command
      .add_option("--stop", options.stop, "End a completion before this text, where the model has a tokenizer; repeat")
      ->allow_extra_args(false)
      ->group(kGroup);
  command
      .add_option("--regex", options.rules.regex,
                  "Completions match this regular expression as a whole, where the model has a tokenizer")
      ->group(kRules)
      ->check([](const std::string& pattern) {
        return pattern.empty() ? std::string("the pattern is empty; leave --regex out, or write .*") : std::string();
      });
  command.add_flag("--forbid-eos", options.rules.forbid_eos, "Never choose an end-of-sequence token")->group(kRules);
  command.add_option("--min-tokens", options.rules.min_tokens, "Choose none before so many tokens")
      ->capture_default_str()
      ->group(kRules);
  command.add_option("--allow-ids", options.rules.allowed_ids, "Choose no other token ids, as in 1,2,3")
      ->delimiter(',')
      ->group(kRules);
}

std::vector<SamplingParameters> sampling_of(const SamplingOptions& options, std::size_t rows) {
  if (options.samples < 1) {
    throw std::invalid_argument(fmt::format("--samples {}: expected at least 1", options.samples));
  }
  if (options.best_of != 0 && options.best_of < options.samples) {
    throw std::invalid_argument(
        fmt::format("--best-of {}: expected at least the {} that --samples gives", options.best_of, options.samples));
  }
  if (options.seeds.size() > 1 && options.seeds.size() != rows) {
    throw std::invalid_argument(fmt::format(
        "--seed: {} seeds came for {} prompts; expected one for all, or one for each", options.seeds.size(), rows));
  }
  std::vector<SamplingParameters> sampling(rows, options.all);
  for (std::size_t row = 0; row < rows && !options.seeds.empty(); ++row) {
    sampling[row].seed = options.seeds.size() == 1 ? options.seeds.front() : options.seeds[row];
  }
  return complete_sampling(sampling, static_cast<std::int64_t>(rows));
}

}  // namespace decodelab
