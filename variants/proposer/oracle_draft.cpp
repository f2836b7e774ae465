// Guesses what rows will say, which it was told, and is wrong as often as it was asked to be: speculation at a rate of
// right guesses that is known.
#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/made_once.h"
#include "base/select_rows.h"
#include "engine/kernels/philox.h"
#include "engine/sequences/proposer.h"
#include "engine/sequences/round_trace.h"
#include "variants/proposer/proposer_variant.h"

namespace decodelab {
namespace {

constexpr const char* kName = "oracle-draft";
constexpr std::int64_t kDefaultTokens = 4;
constexpr std::int64_t kDefaultPercent = 80;
constexpr std::uint64_t kSeed = 25;

/// Returns whether the guess of a token is right: of so many percent of all pairs of row and token, chosen at random.
bool is_right(std::uint64_t row, std::int64_t token, std::int64_t percent) {
  const PhiloxWords words = philox4x32(philox_counter(static_cast<std::uint64_t>(token), row), kSeed);
  return words.word[0] % 100 < static_cast<std::uint64_t>(percent);
}

/// Completions whose rounds are guessed again; none: guesses are right at a rate.
using RoundTrace = std::vector<RoundCounts>;

class OracleDraft final : public Proposer {
 public:
  OracleDraft(std::int64_t rows, std::int64_t percent, std::int64_t most, std::shared_ptr<const RoundTrace> trace)
      : rows_(static_cast<std::size_t>(rows)), percent_(percent), most_(most), trace_(std::move(trace)) {}

  void add(std::int64_t row, std::span<const std::int64_t> tokens) override {
    rows_[static_cast<std::size_t>(row)].held += std::ssize(tokens);
  }

  bool listens() const override { return true; }
  void foretell(std::span<const std::vector<std::int64_t>> completions) override {
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      rows_[row].begin = rows_[row].held;
      rows_[row].number = row;
      rows_[row].completion = completions[row];
      rows_[row].round = 0;
    }
  }

  std::vector<std::vector<std::int64_t>> propose(std::span<const std::int64_t> budgets) override {
    std::vector<std::vector<std::int64_t>> guesses;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      Row& of = rows_[row];
      const std::int64_t said = of.held - of.begin;
      const std::int64_t known = std::ssize(of.completion) - said;
      const RoundCount replayed = next_round(of);
      std::vector<std::int64_t> guess;
      for (std::int64_t index = 0; index < std::min({known, budgets[row], replayed.proposed}); ++index) {
        const std::int64_t right = of.completion[static_cast<std::size_t>(said + index)];
        const bool stands = trace_ ? index < replayed.accepted : is_right(of.number, said + index, percent_);
        // Any other token of every vocabulary will do.
        guess.push_back(stands ? right : (right == 0 ? 1 : right - 1));
      }
      of.round += budgets[row] > 0 ? 1 : 0;
      guesses.push_back(std::move(guess));
    }
    return guesses;
  }

  void select(const std::vector<std::int64_t>& rows) override { rows_ = select_rows(rows_, rows); }
  void append(RowPart& other) override {
    std::ranges::move(dynamic_cast<OracleDraft&>(other).rows_, std::back_inserter(rows_));
  }
  void truncate(std::int64_t row, std::int64_t length) override {
    std::int64_t& held = rows_[static_cast<std::size_t>(row)].held;
    held = std::min(held, length);
  }

 private:
  struct Row {
    std::int64_t held = 0;   ///< Tokens that it was fed.
    std::int64_t begin = 0;  ///< Of these, those before the completion.
    std::uint64_t number = 0;
    std::int64_t round = 0;                  ///< Of its trace.
    std::vector<std::int64_t> completion{};  ///< Empty: unknown, and nothing is guessed.
  };

  /// Returns the guesses of a row's next round, and with a trace how many of them are right.
  RoundCount next_round(const Row& row) const {
    if (trace_ == nullptr) {
      return {.proposed = most_};
    }
    const RoundCounts& rounds = (*trace_)[row.number % trace_->size()];
    RoundCount round = rounds[static_cast<std::size_t>(row.round) % rounds.size()];
    round.proposed = std::min(round.proposed, most_);
    return round;
  }

  std::vector<Row> rows_;
  std::int64_t percent_;
  std::int64_t most_;
  std::shared_ptr<const RoundTrace> trace_;
};

void apply(EnginePlan& plan, const Parameters& parameters) {
  const std::int64_t percent = parameters.integer("percent");
  const std::int64_t tokens = parameters.integer("tokens");
  const std::string& file = parameters.word("trace");  // Copied into what is bound.
  const auto trace = std::make_shared<MadeOnce<const RoundTrace>>();
  plan.proposer.bind(kName, {.make =
                                 [=](const ProposerOptions& options) {
                                   return std::make_unique<OracleDraft>(
                                       options.rows, percent, tokens, file.empty() ? nullptr : trace->get([&] {
                                         return std::make_shared<const RoundTrace>(load_round_trace(file));
                                       }));
                                 },
                             .from = GuessesFrom::told});
}

[[maybe_unused]] const bool registered = register_variant({
    .name = kName,
    .summary = "Guesses are right at a given rate: the completion is known beforehand, in sweeps of phase generate.",
    .source = "a control arm; the rate is the alpha of Leviathan et al. 2023 (arXiv:2211.17192)",
    .parameters = {{.name = "percent",
                    .default_value = kDefaultPercent,
                    .minimum = 0,
                    .maximum = 100,
                    .help = "right guesses of 100"},
                   guesses_parameter(kDefaultTokens),
                   {.name = "trace",
                    .help =
                        "a file of 'generate --speculate N -o jsonl', whose rounds are guessed again, not at a rate",
                    .default_word = ""}},
    .expects = [](const CountedSteps& counted, const Parameters&) { return expected_rounds(counted, true); },
    .unsupported = {},
    .conflict = [](const EnginePlan& plan) { return proposer_conflict(kName, plan); },
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
