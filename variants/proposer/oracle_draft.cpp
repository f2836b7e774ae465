// Guesses what rows will say, which it was told, and is wrong as often as it was asked to be: speculation at a rate of
// right guesses that is known.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/select_rows.h"
#include "engine/kernels/philox.h"
#include "engine/sequences/proposer.h"
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

class OracleDraft final : public Proposer {
 public:
  OracleDraft(std::int64_t rows, std::int64_t percent, std::int64_t most)
      : rows_(static_cast<std::size_t>(rows)), percent_(percent), most_(most) {}

  void add(std::int64_t row, std::span<const std::int64_t> tokens) override {
    rows_[static_cast<std::size_t>(row)].held += std::ssize(tokens);
  }

  bool listens() const override { return true; }
  void foretell(std::span<const std::vector<std::int64_t>> completions) override {
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      rows_[row].begin = rows_[row].held;
      rows_[row].number = row;
      rows_[row].completion = completions[row];
    }
  }

  std::vector<std::vector<std::int64_t>> propose(std::span<const std::int64_t> budgets) override {
    std::vector<std::vector<std::int64_t>> guesses;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const Row& of = rows_[row];
      const std::int64_t said = of.held - of.begin;
      const std::int64_t known = std::ssize(of.completion) - said;
      std::vector<std::int64_t> guess;
      for (std::int64_t token = said; token < said + std::min({known, budgets[row], most_}); ++token) {
        const std::int64_t right = of.completion[static_cast<std::size_t>(token)];
        // Any other token of every vocabulary will do.
        guess.push_back(is_right(of.number, token, percent_) ? right : (right == 0 ? 1 : right - 1));
      }
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
    std::vector<std::int64_t> completion{};  ///< Empty: unknown, and nothing is guessed.
  };

  std::vector<Row> rows_;
  std::int64_t percent_;
  std::int64_t most_;
};

void apply(EnginePlan& plan, const Parameters& parameters) {
  const std::int64_t percent = parameters.integer("percent");
  const std::int64_t tokens = parameters.integer("tokens");
  plan.proposer.bind(kName, {.make =
                                 [=](const ProposerOptions& options) {
                                   return std::make_unique<OracleDraft>(options.rows, percent, tokens);
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
                   guesses_parameter(kDefaultTokens)},
    .expects = [](const CountedSteps& counted, const Parameters&) { return expected_rounds(counted, true); },
    .unsupported = {},
    .conflict = [](const EnginePlan& plan) { return proposer_conflict(kName, plan); },
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
