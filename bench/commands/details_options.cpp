// From the flags and the settings of a line to a request for details.
#include "bench/commands/details_options.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace decodelab {
namespace {

constexpr const char* kGroup = "Details of tokens (with -o json or jsonl)";

/// Returns whether a word is the second of two that are known.
bool is_second(const std::string& flag, const std::string& word, const char* first, const char* second) {
  if (word != first && word != second) {
    throw std::invalid_argument(fmt::format("{} '{}': expected {} or {}", flag, word, first, second));
  }
  return word == second;
}

}  // namespace

DetailsRequest DetailsOptions::request(const LineSettings& own) const {
  const bool logs = own.log_probs.value_or(log_probs);
  const Ties kept = is_second("--ties", own.ties.value_or(ties), "keep", "cut") ? Ties::cut : Ties::keep;
  const DetailsRequest asked{
      .generated = {.log_prob = logs,
                    .rank = logs || own.ranks.value_or(ranks),
                    .top = own.top_tokens.value_or(top),
                    .ties = kept,
                    .ids = own.log_probs_of_ids.value_or(ids)},
      .prompt = {.log_prob = logs,
                 .rank = own.prompt_ranks.value_or(prompt_ranks),
                 .top = own.prompt_top_tokens.value_or(prompt_top),
                 .ties = kept,
                 .ids = own.prompt_log_probs_of_ids.value_or(prompt_ids)},
      .processed = is_second("--log-probs-of", own.log_probs_of.value_or(of), "raw", "processed")};
  if (const std::int64_t most = std::max(asked.generated.top, asked.prompt.top); most > most_top) {
    throw std::invalid_argument(
        fmt::format("{} of the most probable tokens are more than the {} of --max-top-tokens", most, most_top));
  }
  return asked;
}

void add_details_flags(CLI::App& command, DetailsOptions& options) {
  command
      .add_flag("--log-probs", options.log_probs, "Log-probabilities and ranks, and log-probabilities of the prompt")
      ->group(kGroup);
  command.add_flag("--ranks", options.ranks, "The rank of each token: 1 + how many are more probable")->group(kGroup);
  command.add_option("--top-tokens", options.top, "The N most probable tokens of each step")->group(kGroup);
  command
      .add_option("--log-probs-of-ids", options.ids, "Log-probabilities of these token ids in each step, as in 1,2,3")
      ->delimiter(',')
      ->group(kGroup);
  command.add_flag("--prompt-ranks", options.prompt_ranks, "As --ranks, of the prompt's tokens")->group(kGroup);
  command.add_option("--prompt-top-tokens", options.prompt_top, "As --top-tokens, of the prompt's tokens")
      ->group(kGroup);
  command.add_option("--prompt-log-probs-of-ids", options.prompt_ids, "As --log-probs-of-ids, of the prompt's tokens")
      ->delimiter(',')
      ->group(kGroup);
  command
      .add_option("--ties", options.ties,
                  "keep: tokens as probable as the last of the N come too, up to 4 N in all; cut: those of the lowest "
                  "ids come, N in all")
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_option("--log-probs-of", options.of,
                  "raw: of the model's own logits; processed: of those that tokens are chosen from, after penalty, "
                  "what may come, and warpers")
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_option("--max-top-tokens", options.most_top, "The most that a line may ask for as its most probable tokens")
      ->capture_default_str()
      ->group(kGroup);
}

}  // namespace decodelab
