// A draft in a process of its own: who asks it, and who answers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/measure/process/child_process.h"
#include "bench/measure/process/mailbox.h"
#include "engine/sequences/sequence_slots.h"

namespace decodelab {

/// Answers what a DraftProcess at the other side of `mailbox` asks, until it says that this is all. What `make` and its
/// proposers throw is told to the other side.
void serve_draft(Mailbox& mailbox, const DraftMaker& make);
/// Returns the message by which the other side learns why there is no answer.
std::vector<std::int64_t> failed_answer(const std::string& why);

/// Asks a draft for guesses. What sessions add and take back is sent with the next question, so that a round wakes the
/// other process once. Used by one thread at a time.
class DraftProcess : public std::enable_shared_from_this<DraftProcess> {
 public:
  /// `arguments` start the process, with the descriptor of its mailbox behind them; it says when it is ready. Throws
  /// std::runtime_error when it cannot be started, with what it says.
  explicit DraftProcess(std::vector<std::string> arguments);
  /// Asks whoever serves the other side of `mailbox`.
  explicit DraftProcess(std::unique_ptr<Mailbox> mailbox);
  ~DraftProcess();
  DraftProcess(const DraftProcess&) = delete;
  DraftProcess& operator=(const DraftProcess&) = delete;

  /// Returns the proposer of a session, which keeps this object alive. The draft is greedy.
  std::unique_ptr<Proposer> open(std::int64_t rows, std::int64_t max_tokens, std::int64_t most);

 private:
  friend class ApartProposer;

  /// Puts an order with its numbers behind those that wait to be sent.
  void order(std::int64_t kind, std::int64_t session, std::span<const std::int64_t> numbers);
  void put(std::int64_t kind, std::int64_t session, std::span<const std::int64_t> numbers);
  /// Sends what waits; returns the answer. Throws std::runtime_error with the other side's message, or where it ended.
  std::vector<std::int64_t> ask();
  std::vector<std::int64_t> answer();

  std::unique_ptr<Mailbox> mailbox_;
  std::optional<ChildProcess> child_;
  std::vector<std::int64_t> waiting_{};
  std::int64_t opened_ = 0;
};

}  // namespace decodelab
