// A draft at the other side of a mailbox guesses what it would guess here.
#include "bench/measure/process/draft_process.h"

#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "engine/sequences/proposer.h"

namespace decodelab {
namespace {

using Tokens = std::vector<std::int64_t>;

/// Guesses that each row goes on counting from its last token.
class Counting final : public Proposer {
 public:
  Counting(std::int64_t rows, std::int64_t most) : rows_(static_cast<std::size_t>(rows)), most_(most) {}

  void add(std::int64_t row, std::span<const std::int64_t> tokens) override {
    Tokens& held = rows_.at(static_cast<std::size_t>(row));
    held.insert(held.end(), tokens.begin(), tokens.end());
  }
  std::vector<Tokens> propose(std::span<const std::int64_t> budgets) override {
    std::vector<Tokens> guesses(rows_.size());
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (rows_[row].empty()) {
        throw std::invalid_argument("a row holds nothing");
      }
      for (std::int64_t guess = 1; guess <= std::min(budgets[row], most_); ++guess) {
        guesses[row].push_back(rows_[row].back() + guess);
      }
    }
    return guesses;
  }
  void select(const std::vector<std::int64_t>& rows) override {
    std::vector<Tokens> kept;
    for (const std::int64_t row : rows) {
      kept.push_back(rows_.at(static_cast<std::size_t>(row)));
    }
    rows_ = kept;
  }
  void append(RowPart& other) override {
    for (Tokens& row : dynamic_cast<Counting&>(other).rows_) {
      rows_.push_back(row);
    }
  }
  void truncate(std::int64_t row, std::int64_t length) override {
    rows_.at(static_cast<std::size_t>(row)).resize(static_cast<std::size_t>(length));
  }

 private:
  std::vector<Tokens> rows_;
  std::int64_t most_;
};

/// A draft in a thread of its own, which sees no more of the tests than a process would.
class DraftProcesses : public ::testing::Test {
 protected:
  DraftProcesses() {
    auto ours = std::make_unique<Mailbox>();
    theirs_ = std::make_unique<Mailbox>(ours->descriptor());
    server_ = std::thread([this] {
      serve_draft(*theirs_, [](std::int64_t rows, std::int64_t, std::int64_t most) {
        return std::make_unique<Counting>(rows, most);
      });
    });
    process_ = std::make_shared<DraftProcess>(std::move(ours));
  }
  ~DraftProcesses() override {
    process_.reset();
    server_.join();
  }

  std::unique_ptr<Mailbox> theirs_;
  std::thread server_;
  std::shared_ptr<DraftProcess> process_;
};

TEST_F(DraftProcesses, GuessForTheRowsOfEachSession) {
  const auto proposer = process_->open(2, 100, 3);
  proposer->add(0, Tokens{4, 5});
  proposer->add(1, Tokens{10});
  EXPECT_EQ(proposer->propose(Tokens{2, 9}), (std::vector<Tokens>{{6, 7}, {11, 12, 13}}));
  proposer->truncate(0, 1);
  proposer->select({1, 0});
  EXPECT_EQ(proposer->propose(Tokens{0, 1}), (std::vector<Tokens>{{}, {5}}));
  const auto other = process_->open(1, 100, 1);
  other->add(0, Tokens{7});
  proposer->append(*other);
  EXPECT_EQ(proposer->propose(Tokens{1, 1, 1}), (std::vector<Tokens>{{11}, {5}, {8}}));
}

TEST_F(DraftProcesses, SayWhatWentWrongAndGoOn) {
  const auto proposer = process_->open(1, 100, 3);
  try {
    proposer->propose(Tokens{1});
    ADD_FAILURE() << "a row holds nothing";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()), "the process of the draft says: a row holds nothing");
  }
  proposer->add(0, Tokens{1});
  EXPECT_EQ(proposer->propose(Tokens{1}), (std::vector<Tokens>{{2}}));
}

TEST_F(DraftProcesses, TakeMoreTokensThanOneMessageHolds) {
  const auto proposer = process_->open(1, 100, 1);
  const Tokens many(static_cast<std::size_t>(Mailbox::kMostNumbers) / 3, 5);
  for (int time = 0; time < 5; ++time) {
    proposer->add(0, many);
  }
  proposer->add(0, Tokens{8});
  EXPECT_EQ(proposer->propose(Tokens{1}), (std::vector<Tokens>{{9}}));
}

TEST(DraftProcess, ThatCannotStartIsToldOf) {
  EXPECT_THROW(DraftProcess({"/bin/false"}), std::runtime_error);
  EXPECT_THROW(Mailbox(0), std::runtime_error);
}

}  // namespace
}  // namespace decodelab
