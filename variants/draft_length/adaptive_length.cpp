// Guesses more behind guesses that were all right, and fewer behind a wrong one.
#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "base/select_rows.h"
#include "engine/sequences/draft_length.h"
#include "variants/registry.h"

namespace decodelab {
namespace {

constexpr std::int64_t kDefaultStart = 4;
constexpr std::int64_t kMostStart = 64;
constexpr std::int64_t kMoreWhereAllWereRight = 2;

class AdaptiveLength final : public DraftLength {
 public:
  AdaptiveLength(std::int64_t rows, std::int64_t start) : lengths_(static_cast<std::size_t>(rows), start) {}

  std::vector<std::int64_t> wanted(std::span<const std::int64_t> most) override {
    std::vector<std::int64_t> wanted;
    for (std::size_t row = 0; row < lengths_.size(); ++row) {
      wanted.push_back(std::min(most[row], lengths_[row]));
    }
    return wanted;
  }

  void note(std::span<const Outcome> rows, std::int64_t, std::int64_t) override {
    for (std::size_t row = 0; row < lengths_.size(); ++row) {
      std::int64_t& length = lengths_[row];
      if (rows[row].proposed < length) {
        continue;  // Somebody else kept it short: that says nothing of this length.
      }
      length = rows[row].accepted == rows[row].proposed ? length + kMoreWhereAllWereRight
                                                        : std::max<std::int64_t>(1, length - 1);
    }
  }

  void select(const std::vector<std::int64_t>& rows) override { lengths_ = select_rows(lengths_, rows); }
  void append(RowPart& other) override {
    std::ranges::move(dynamic_cast<AdaptiveLength&>(other).lengths_, std::back_inserter(lengths_));
  }

 private:
  std::vector<std::int64_t> lengths_;
};

void apply(EnginePlan& plan, const Parameters& parameters) {
  plan.draft_length.bind("adaptive-length", [start = parameters.integer("start")](std::int64_t rows) {
    return std::make_unique<AdaptiveLength>(rows, start);
  });
}

[[maybe_unused]] const bool registered = register_variant({
    .name = "adaptive-length",
    .summary = "A row is guessed two tokens further where all guesses were right, and one token less far where one was "
               "wrong.",
    .source = "the heuristic schedule of Hugging Face's assisted generation (Gante 2023)",
    .parameters = {{.name = "start",
                    .default_value = kDefaultStart,
                    .minimum = 1,
                    .maximum = kMostStart,
                    .help = "guesses of a row in the first round"}},
    .expects = {},
    .unsupported = {},
    .conflict = {},
    .apply = apply,
});

}  // namespace
}  // namespace decodelab
