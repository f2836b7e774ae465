// From the sampling flags to the parameters of each row.
#include "bench/commands/sampling_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace decodelab {
namespace {

/// Flags that mean nothing to greedy decoding.
constexpr std::array kSamplingFlags{"--temperature", "--top-k", "--top-p", "--typical-p", "--seed"};

}  // namespace

void add_sampling_flags(CLI::App& command, SamplingOptions& options) {
  const std::string group =
      "Sampling (greedy without; each of these flags but --repetition-penalty and --stop turns it on)";
  command.add_flag("--sample", options.all.sample, "Draw tokens at random from the softmax of the logits")
      ->group(group);
  command.add_option("--temperature", options.all.temperature, "Divides the logits; above 0")
      ->capture_default_str()
      ->group(group);
  command.add_option("--top-k", options.all.top_k, "Keep the K likeliest tokens, ties included; 0: all")
      ->capture_default_str()
      ->group(group);
  command.add_option("--top-p", options.all.top_p, "Keep the likeliest tokens that together reach this probability")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--typical-p", options.all.typical_p,
                  "Keep the tokens nearest to the expected surprise that together reach this probability")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--repetition-penalty", options.all.repetition_penalty,
                  "Makes tokens of the prompt and the completion less likely above 1, also in greedy decoding")
      ->capture_default_str()
      ->group(group);
  command
      .add_option(
          "--seed", options.seeds,
          "Of the random numbers: one for all rows, or repeat for each row; without it they are drawn, and the json "
          "output tells them")
      ->allow_extra_args(false)
      ->group(group);
  command
      .add_option("--stop", options.stop,
                  "End a completion before this text, where the model has a byte-level BPE tokenizer.json; repeat")
      ->allow_extra_args(false)
      ->group(group);
}

std::vector<SamplingParameters> sampling_of(const CLI::App& command, const SamplingOptions& options, std::size_t rows) {
  SamplingParameters all = options.all;
  all.sample =
      all.sample || std::ranges::any_of(kSamplingFlags, [&](const char* flag) { return command.count(flag) != 0; });
  if (options.seeds.size() > 1 && options.seeds.size() != rows) {
    throw std::invalid_argument(fmt::format(
        "--seed: {} seeds came for {} prompts; expected one for all, or one for each", options.seeds.size(), rows));
  }
  std::vector<SamplingParameters> sampling(rows, all);
  for (std::size_t row = 0; row < rows && !options.seeds.empty(); ++row) {
    sampling[row].seed = options.seeds.size() == 1 ? options.seeds.front() : options.seeds[row];
  }
  return complete_sampling(sampling, static_cast<std::int64_t>(rows));
}

}  // namespace decodelab
