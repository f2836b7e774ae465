// Puts what a proposer is told into numbers, and takes it out of them again.
#include "bench/measure/process/draft_process.h"

#include <map>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "engine/sequences/proposer.h"

namespace decodelab {
namespace {

enum Order : std::int64_t { kOpen, kClose, kAdd, kTruncate, kSelect, kAppend, kPropose, kEnd };

/// Numbers before those of an order: its kind, the session, and how many numbers follow.
constexpr std::size_t kOrderHead = 3;
/// Orders that wait are sent before they are more numbers than this.
constexpr std::size_t kMostWaiting = Mailbox::kMostNumbers / 2;
constexpr int kLookMs = 100;

constexpr std::int64_t kAnswered = 0;
constexpr std::int64_t kFailed = 1;

/// Does what a message says for the sessions of the other side; returns the answer to its last order.
class DraftSessions {
 public:
  explicit DraftSessions(const DraftMaker& make) : make_(make) {}

  bool ended() const { return ended_; }

  std::vector<std::int64_t> obey(std::span<const std::int64_t> message) {
    std::vector<std::int64_t> answer{kAnswered};
    while (!message.empty()) {
      if (message.size() < kOrderHead || message[2] < 0 ||
          static_cast<std::size_t>(message[2]) > message.size() - kOrderHead) {
        throw std::invalid_argument("an order to a draft ends early");
      }
      const auto numbers = message.subspan(kOrderHead, static_cast<std::size_t>(message[2]));
      obey(message[0], message[1], numbers, answer);
      message = message.subspan(kOrderHead + numbers.size());
    }
    return answer;
  }

 private:
  void obey(std::int64_t kind, std::int64_t session, std::span<const std::int64_t> numbers,
            std::vector<std::int64_t>& answer) {
    switch (kind) {
      case kOpen: sessions_[session] = make_(numbers[0], numbers[1], numbers[2]); break;
      case kClose: sessions_.erase(session); break;
      case kAdd: of(session).add(numbers[0], numbers.subspan(1)); break;
      case kTruncate: of(session).truncate(numbers[0], numbers[1]); break;
      case kSelect: of(session).select({numbers.begin(), numbers.end()}); break;
      case kAppend: of(session).append(of(numbers[0])); break;
      case kPropose:
        for (const std::vector<std::int64_t>& row : of(session).propose(numbers)) {
          answer.push_back(std::ssize(row));
          answer.insert(answer.end(), row.begin(), row.end());
        }
        break;
      case kEnd: ended_ = true; break;
      default: throw std::invalid_argument(fmt::format("there is no order {} to a draft", kind));
    }
  }

  Proposer& of(std::int64_t session) {
    const auto found = sessions_.find(session);
    if (found == sessions_.end()) {
      throw std::invalid_argument(fmt::format("a draft has no session {}", session));
    }
    return *found->second;
  }

  const DraftMaker& make_;
  std::map<std::int64_t, std::unique_ptr<Proposer>> sessions_;
  bool ended_ = false;
};

}  // namespace

std::vector<std::int64_t> failed_answer(const std::string& why) {
  std::vector<std::int64_t> answer{kFailed};
  answer.insert(answer.end(), why.begin(), why.end());
  return answer;
}

void serve_draft(Mailbox& mailbox, const DraftMaker& make) {
  mailbox.send(std::vector<std::int64_t>{kAnswered});  // It is ready.
  DraftSessions sessions(make);
  while (!sessions.ended()) {
    const std::optional<std::vector<std::int64_t>> message = mailbox.receive(kLookMs);
    if (!message) {
      continue;
    }
    std::vector<std::int64_t> answer;
    try {
      answer = sessions.obey(*message);
    } catch (const std::exception& error) {
      answer = failed_answer(error.what());
    }
    mailbox.send(answer);
  }
}

/// A session's side of a draft that is elsewhere.
class ApartProposer final : public Proposer {
 public:
  ApartProposer(std::shared_ptr<DraftProcess> process, std::int64_t session)
      : process_(std::move(process)), session_(session) {}
  ~ApartProposer() override { process_->put(kClose, session_, {}); }
  ApartProposer(const ApartProposer&) = delete;
  ApartProposer& operator=(const ApartProposer&) = delete;

  void add(std::int64_t row, std::span<const std::int64_t> tokens) override {
    std::vector<std::int64_t> numbers{row};
    numbers.insert(numbers.end(), tokens.begin(), tokens.end());
    process_->order(kAdd, session_, numbers);
  }

  std::vector<std::vector<std::int64_t>> propose(std::span<const std::int64_t> budgets) override {
    process_->order(kPropose, session_, budgets);
    const std::vector<std::int64_t> answer = process_->ask();
    std::span<const std::int64_t> left = answer;
    std::vector<std::vector<std::int64_t>> guesses;
    while (!left.empty()) {
      const auto count = static_cast<std::size_t>(left[0]);
      guesses.emplace_back(left.begin() + 1, left.begin() + 1 + static_cast<std::ptrdiff_t>(count));
      left = left.subspan(1 + count);
    }
    return guesses;
  }

  void select(const std::vector<std::int64_t>& rows) override { process_->order(kSelect, session_, rows); }
  void append(RowPart& other) override {
    process_->order(kAppend, session_, std::vector{dynamic_cast<ApartProposer&>(other).session_});
  }
  void truncate(std::int64_t row, std::int64_t length) override {
    process_->order(kTruncate, session_, std::vector{row, length});
  }

 private:
  std::shared_ptr<DraftProcess> process_;
  std::int64_t session_;
};

DraftProcess::DraftProcess(std::vector<std::string> arguments) : mailbox_(std::make_unique<Mailbox>()) {
  arguments.push_back(std::to_string(mailbox_->descriptor()));
  child_.emplace(arguments);
  answer();
}

DraftProcess::DraftProcess(std::unique_ptr<Mailbox> mailbox) : mailbox_(std::move(mailbox)) { answer(); }

DraftProcess::~DraftProcess() {
  if (!child_) {  // Which is killed.
    put(kEnd, 0, {});
    mailbox_->send(waiting_);
  }
}

std::unique_ptr<Proposer> DraftProcess::open(std::int64_t rows, std::int64_t max_tokens, std::int64_t most) {
  const std::int64_t session = opened_++;
  order(kOpen, session, std::vector{rows, max_tokens, most});
  return std::make_unique<ApartProposer>(shared_from_this(), session);
}

void DraftProcess::order(std::int64_t kind, std::int64_t session, std::span<const std::int64_t> numbers) {
  if (!waiting_.empty() && waiting_.size() + kOrderHead + numbers.size() > kMostWaiting) {
    ask();
  }
  put(kind, session, numbers);
}

void DraftProcess::put(std::int64_t kind, std::int64_t session, std::span<const std::int64_t> numbers) {
  waiting_.insert(waiting_.end(), {kind, session, std::ssize(numbers)});
  waiting_.insert(waiting_.end(), numbers.begin(), numbers.end());
}

std::vector<std::int64_t> DraftProcess::ask() {
  mailbox_->send(std::exchange(waiting_, {}));
  return answer();
}

std::vector<std::int64_t> DraftProcess::answer() {
  std::optional<std::vector<std::int64_t>> message;
  while (!(message = mailbox_->receive(kLookMs))) {
    if (child_ && !child_->read_line(0) && child_->ended()) {
      throw std::runtime_error("the process of the draft has ended");
    }
  }
  if (message->empty() || message->front() != kAnswered) {
    throw std::runtime_error(
        fmt::format("the process of the draft says: {}",
                    message->empty() ? std::string("nothing") : std::string(message->begin() + 1, message->end())));
  }
  return {message->begin() + 1, message->end()};
}

}  // namespace decodelab
