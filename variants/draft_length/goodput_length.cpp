// Guesses as many tokens as are worth their time: by what rounds cost, and how many guesses were right.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/sequences/draft_length.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

constexpr std::int64_t kDefaultMost = 16;
constexpr std::int64_t kMostOfMost = 64;

/// The guesses that were looked at lately, and how many of them were right.
struct Rightness {
  // Three of four are thought to be right until some were looked at.
  double right = 1.5;
  double checked = 2;

  double share() const { return right / checked; }
  /// Adds those of a round to what is kept of the earlier ones.
  void add(const Rightness& of_round) {
    constexpr double kKept = 0.9;
    right = kKept * right + of_round.right;
    checked = kKept * checked + of_round.checked;
  }
};

/// What the sessions of an engine know together: what rounds of so many rows and guesses take, in nanoseconds, and the
/// share of right guesses that a session begins with.
class SharedKnowledge {
 public:
  void note(const Rightness& of_round) {
    const std::lock_guard lock(mutex_);
    rightness_.add(of_round);
  }
  /// Returns the share seen lately with the weight of two guesses: a session's own soon count for more.
  Rightness first_belief() const {
    constexpr double kWeight = 2;
    const std::lock_guard lock(mutex_);
    return {.right = kWeight * rightness_.share(), .checked = kWeight};
  }

  void note(std::int64_t rows, std::int64_t guesses, double nanoseconds) {
    constexpr double kWeightOfLast = 0.2;
    // A round that the machine interrupted says little of the next.
    constexpr double kMostOfMean = 2;
    const std::lock_guard lock(mutex_);
    const auto [price, is_new] = prices_[rows].emplace(guesses, nanoseconds);
    if (!is_new) {
      price->second += kWeightOfLast * (std::min(nanoseconds, kMostOfMean * price->second) - price->second);
    }
  }

  /// Returns the prices of rounds by their number of guesses, up to `most` or a little more than was ever tried: those
  /// that are known, and what lies on lines between them. Empty where a step without guesses has not been seen.
  std::vector<double> of(std::int64_t rows, std::int64_t most) const {
    const std::lock_guard lock(mutex_);
    const auto found = prices_.find(rows);
    if (found == prices_.end() || !found->second.contains(0)) {
      return {};
    }
    const std::map<std::int64_t, double>& known = found->second;
    // What nobody has paid for is tried in small steps.
    const std::int64_t longest = std::min(most, 2 * known.rbegin()->first + 2);
    std::vector<double> prices;
    for (std::int64_t guesses = 0; guesses <= longest; ++guesses) {
      auto after = known.lower_bound(guesses);
      if (after != known.end() && after->first == guesses) {
        prices.push_back(after->second);
        continue;
      }
      if (after == known.end()) {
        --after;
      }
      // Behind the last known one, the line goes on; with a plain step alone, a guess is thought to cost little.
      const bool alone = after == known.begin();
      const auto before = alone ? after : std::prev(after);
      constexpr double kGuessOfPlain = 0.05;
      const double slope =
          alone ? kGuessOfPlain * after->second
                : std::max(0.0, (after->second - before->second) / static_cast<double>(after->first - before->first));
      prices.push_back(after->second + slope * static_cast<double>(guesses - after->first));
    }
    return prices;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::int64_t, std::map<std::int64_t, double>> prices_;
  Rightness rightness_;
};

/// Chooses one length for all rows: that with the most tokens a second, by the share of guesses that were right lately.
/// Where no guess is worth its time, one row guesses one token once in a while, to see whether that has changed.
class GoodputLength final : public DraftLength {
 public:
  GoodputLength(std::shared_ptr<SharedKnowledge> known, std::int64_t rows, std::int64_t most)
      : known_(std::move(known)), rows_(rows), most_(most), rightness_(known_->first_belief()) {}

  std::vector<std::int64_t> wanted(std::span<const std::int64_t> most) override {
    const std::int64_t length = best_length(std::min(most_, *std::ranges::max_element(most)));
    std::vector<std::int64_t> wanted;
    for (const std::int64_t of_row : most) {
      wanted.push_back(std::min(of_row, length));
    }
    if (length == 0 && is_time_to_look()) {
      const std::size_t row = looks_++ % wanted.size();
      wanted[row] = std::min<std::int64_t>(1, most[row]);
    }
    return wanted;
  }

  void note(std::span<const Outcome> rows, std::int64_t propose_ns, std::int64_t verify_ns) override {
    const std::int64_t longest = std::ranges::max_element(rows, {}, &Outcome::proposed)->proposed;
    const std::ptrdiff_t guessed = std::ranges::count_if(rows, [](const Outcome& row) { return row.proposed > 0; });
    if (guessed == 0 || 2 * guessed > std::ssize(rows)) {  // Else a round is cheaper than its longest row says.
      known_->note(rows_, longest, static_cast<double>(propose_ns + verify_ns));
    }
    if (guessed == 0) {
      return;
    }
    Rightness of_round{.right = 0, .checked = 0};
    for (const Outcome& row : rows) {
      // Guesses behind the first wrong one were not looked at.
      const double share = 1.0 / static_cast<double>(guessed);
      of_round.right += share * static_cast<double>(row.accepted);
      of_round.checked += share * static_cast<double>(row.accepted + (row.accepted < row.proposed ? 1 : 0));
    }
    rightness_.add(of_round);
    known_->note(of_round);
  }

  void select(const std::vector<std::int64_t>& rows) override { rows_ = std::ssize(rows); }
  void append(RowPart& other) override { rows_ += dynamic_cast<GoodputLength&>(other).rows_; }

 private:
  std::int64_t best_length(std::int64_t most) {
    const std::vector<double> prices = known_->of(rows_, most);
    if (prices.empty()) {
      return 0;  // The first round shows what a plain step costs.
    }
    const double right = rightness_.share();
    double tokens = 1;
    double of_length = 1;
    double tokens_of_best = 1;
    std::int64_t best = 0;
    for (std::int64_t length = 1; length < std::ssize(prices); ++length) {
      of_length *= right;
      tokens += of_length;
      const auto index = static_cast<std::size_t>(length);
      if (tokens / prices[index] > tokens_of_best / prices[static_cast<std::size_t>(best)]) {
        best = length;
        tokens_of_best = tokens;
      }
    }
    if (best > 0) {
      pause_ = kFirstPause;
      waited_ = 0;
    }
    return best;
  }

  /// Returns whether enough rounds had no guess; each pause is longer than the one before it.
  bool is_time_to_look() {
    if (++waited_ <= pause_) {
      return false;
    }
    waited_ = 0;
    pause_ = std::min(2 * pause_, kLongestPause);
    return true;
  }

  static constexpr std::int64_t kFirstPause = 4;
  static constexpr std::int64_t kLongestPause = 128;

  std::shared_ptr<SharedKnowledge> known_;
  std::int64_t rows_;
  std::int64_t most_;
  Rightness rightness_;
  std::int64_t waited_ = 0;  ///< Rounds without a guess.
  std::int64_t pause_ = kFirstPause;
  std::size_t looks_ = 0;  ///< So far: rows look in turn.
};

void apply(EnginePlan& plan, const Parameters& parameters) {
  const auto known = std::make_shared<SharedKnowledge>();
  plan.draft_length.bind("goodput-length", [known, most = parameters.integer("most")](std::int64_t rows) {
    return std::make_unique<GoodputLength>(known, rows, most);
  });
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "goodput-length",
    .summary = "As many tokens are guessed as give the most tokens a second, by what rounds took and how many guesses "
               "were right; maybe none.",
    .source = "SmartSpec (Liu et al. 2024, arXiv:2406.14066), whose measure it is, with prices measured as it runs",
    .parameters = {{.name = "most",
                    .default_value = kDefaultMost,
                    .minimum = 1,
                    .maximum = kMostOfMost,
                    .help = "the most guesses of a row in a round"}},
    .expects = {},
    .unsupported = {},
    .conflict = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
