// Guesses that a row goes on as it did where its last few tokens stood for the first time.
#include <unordered_map>

#include "engine/sequences/row_proposer.h"
#include "variants/proposer/proposer_variant.h"

namespace decodelab {
namespace {

constexpr const char* kName = "ngram-lookup";
constexpr std::int64_t kDefaultTokens = 10;
constexpr std::int64_t kDefaultMatch = 2;
constexpr std::int64_t kMostMatch = 16;

/// The tokens of a row, and where each run of up to `longest` of them ended first. A run is known by the number of the
/// run before its last token, and that token, so that each token costs `longest` look-ups.
class LookupRow {
 public:
  explicit LookupRow(std::int64_t longest) : longest_(static_cast<std::size_t>(longest)), runs_(longest_) {}

  void add(std::int64_t token) {
    tokens_.push_back(token);
    std::vector<std::uint32_t> runs;  // Of each length, from 1, that end here.
    std::uint32_t shorter = 0;        // The empty run.
    for (std::size_t length = 1; length <= std::min(longest_, tokens_.size()); ++length) {
      const std::uint64_t key = static_cast<std::uint64_t>(shorter) << 32 | static_cast<std::uint32_t>(token);
      const auto [found, added] = runs_[length - 1].try_emplace(key, static_cast<std::uint32_t>(ends_.size()));
      if (added) {
        ends_.push_back(tokens_.size());
      }
      runs.push_back(found->second);
      shorter = length <= last_runs_.size() ? last_runs_[length - 1] : 0;
    }
    last_runs_ = std::move(runs);
  }

  /// Looks for the longest run first, as Transformers' prompt look-up does.
  std::vector<std::int64_t> guess(std::int64_t most) const {
    for (auto run = last_runs_.rbegin(); run != last_runs_.rend() && most > 0; ++run) {
      const std::size_t begin = ends_[*run];
      if (begin < tokens_.size()) {
        const std::size_t end = std::min(tokens_.size(), begin + static_cast<std::size_t>(most));
        return {tokens_.begin() + static_cast<std::ptrdiff_t>(begin),
                tokens_.begin() + static_cast<std::ptrdiff_t>(end)};
      }
    }
    return {};
  }

  const std::vector<std::int64_t>& tokens() const { return tokens_; }

 private:
  std::size_t longest_;
  std::vector<std::int64_t> tokens_;
  std::vector<std::unordered_map<std::uint64_t, std::uint32_t>> runs_;  ///< Numbers of the runs of each length.
  std::vector<std::size_t> ends_;                                       ///< Of each run: how many tokens end with it.
  std::vector<std::uint32_t> last_runs_;                                ///< Those that end with the last token.
};

void apply(EnginePlan& plan, const Parameters& parameters) {
  const std::int64_t tokens = parameters.integer("tokens");
  const std::int64_t match = parameters.integer("match");
  plan.proposer.bind(kName, {.make = [=](const ProposerOptions& options) {
                       return std::make_unique<RowProposer<LookupRow>>(options.rows, LookupRow(match), tokens);
                     }});
}

[[maybe_unused]] const bool registered = register_variant({
    .name = kName,
    .summary = "A row is guessed to go on as it did where its last tokens stood first.",
    .source = "Prompt look-up decoding (Saxena 2023), as Transformers' prompt_lookup_num_tokens",
    .parameters = {guesses_parameter(kDefaultTokens),
                   {.name = "match",
                    .default_value = kDefaultMatch,
                    .minimum = 1,
                    .maximum = kMostMatch,
                    .help = "the most last tokens that are looked for"}},
    .expects = [](const CountedSteps& counted, const Parameters&) { return expected_rounds(counted, false); },
    .unsupported = {},
    .conflict = [](const EnginePlan& plan) { return proposer_conflict(kName, plan); },
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
