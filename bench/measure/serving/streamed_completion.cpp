// Puts the events of a stream and the times of its reads together.
#include "bench/measure/serving/streamed_completion.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "bench/measure/serving/event_stream.h"
#include "bench/measure/worker.h"

namespace decodelab {
namespace {

constexpr int kStatusOk = 200;

[[noreturn]] void fail_of_server(const std::string& what) {
  throw WorkerError(RowStatus::failed, "the server " + what);
}

[[noreturn]] void refuse_without_ids(ServerApi api) {
  throw WorkerError(
      RowStatus::unsupported,
      fmt::format("the server shows no token ids, so that nothing proves its answers right: {}",
                  api == ServerApi::openai ? "measure one that knows return_token_ids (vLLM from 0.10.2 on), or "
                                             "llama-server by --api llama.cpp"
                                           : "measure a llama-server that knows return_tokens"));
}

void check_status(const HttpResponse& response) {
  if (response.status() != kStatusOk) {
    fail_of_server(fmt::format("answered {}{}{}: {}", response.status(), response.reason().empty() ? "" : " ",
                               response.reason(), message_of_error(response.body())));
  }
}

/// Adds the tokens of events to a completion.
class TokenTimes {
 public:
  explicit TokenTimes(StreamedCompletion& completion) : completion_(completion) {}

  void take(const CompletionEvent& event, std::int64_t ns) {
    completion_.ids.insert(completion_.ids.end(), event.ids.begin(), event.ids.end());
    const std::int64_t total = event.total.value_or(count_ + std::ssize(event.ids));
    const std::int64_t tokens = std::max<std::int64_t>(total - count_, 0);
    if (tokens == 0) {
      return;
    }
    count_ = total;
    completion_.bundled_tokens += tokens - 1;
    if (pending_ > 0 && ns == read_ns_) {
      ++completion_.read_together;
    } else {
      end_read();
      read_ns_ = ns;
    }
    pending_ += tokens;
  }

  /// Gives the tokens of the last read their times.
  void end_read() {
    const std::int64_t before = completion_.token_ns.empty() ? read_ns_ : completion_.token_ns.back();
    for (std::int64_t token = 1; token <= pending_; ++token) {
      completion_.token_ns.push_back(before + (read_ns_ - before) * token / pending_);
    }
    pending_ = 0;
  }

  std::int64_t count() const { return count_; }

 private:
  StreamedCompletion& completion_;
  std::int64_t count_ = 0;    ///< Tokens so far, with those that are pending.
  std::int64_t pending_ = 0;  ///< Tokens of the read at hand.
  std::int64_t read_ns_ = 0;
};

/// Says how far the stream had come when something broke.
std::string so_far(std::int64_t came, std::int64_t tokens) {
  return fmt::format("; {} of {} tokens had come", came, tokens);
}

void check_count(std::int64_t count, std::int64_t tokens, const std::string& finish) {
  if (count != tokens) {
    fail_of_server(fmt::format("sent {} tokens where {} were asked for, and ended the completion{}", count, tokens,
                               finish.empty() ? "" : fmt::format(" for the reason '{}'", finish)));
  }
}

}  // namespace

StreamedCompletion read_completion(ServerApi api, const HttpExchange& exchange, std::int64_t tokens) {
  const HttpResponse& response = exchange.response();
  if (exchange.error().empty() || (response.status() != 0 && response.status() != kStatusOk)) {
    check_status(response);
  }
  EventStream stream;
  stream.feed(response.body());
  StreamedCompletion completion;
  TokenTimes times(completion);
  bool ended = false;
  bool shows_ids = false;
  bool has_choice = false;
  std::optional<std::int64_t> usage;
  auto arrival = exchange.arrivals().begin();
  for (const StreamEvent& told : stream.events()) {
    while (arrival->bytes < told.end) {
      ++arrival;
    }
    CompletionEvent event;
    try {
      event = parse_completion_event(api, told.data);
    } catch (const EventError& error) {
      fail_of_server(error.what() + so_far(times.count(), tokens));
    }
    has_choice = has_choice || event.has_choice;
    shows_ids = shows_ids || event.shows_ids;
    if (event.has_choice) {
      times.take(event, arrival->ns);
    } else if (event.total) {
      usage = event.total;
    }
    completion.finish = event.finish.empty() ? completion.finish : event.finish;
    ended = ended || event.last;
  }
  times.end_read();
  if (has_choice && !shows_ids) {
    refuse_without_ids(api);
  }
  if (!exchange.error().empty()) {
    fail_of_server(exchange.error() + so_far(times.count(), tokens));
  }
  if (stream.events().empty()) {
    fail_of_server(fmt::format("sent no event of a stream; its reply was: {}", message_of_error(response.body())));
  }
  if (!ended) {
    fail_of_server(fmt::format("ended its stream {}{}",
                               stream.within_event()      ? "within an event"
                               : api == ServerApi::openai ? "without [DONE]"
                                                          : "without its last event",
                               so_far(times.count(), tokens)));
  }
  if (usage && *usage != times.count()) {
    fail_of_server(fmt::format("counts {} tokens of a completion and sent {}", *usage, times.count()));
  }
  check_count(times.count(), tokens, completion.finish);
  if (completion.ids.size() > completion.token_ns.size()) {
    fail_of_server(fmt::format("sent {} token ids and counts {}", completion.ids.size(), completion.token_ns.size()));
  }
  return completion;
}

StreamedCompletion read_whole_completion(ServerApi api, const HttpExchange& exchange, std::int64_t tokens) {
  const HttpResponse& response = exchange.response();
  if (!exchange.error().empty()) {
    fail_of_server(exchange.error());
  }
  check_status(response);
  CompletionEvent event;
  try {
    event = parse_completion_event(api, response.body());
  } catch (const EventError& error) {
    fail_of_server(error.what());
  }
  if (!event.shows_ids) {
    refuse_without_ids(api);
  }
  const std::int64_t count = std::ssize(event.ids);
  if (event.total && *event.total != count) {
    fail_of_server(fmt::format("counts {} tokens of a completion and sent {}", *event.total, count));
  }
  if (count == 0 || count > tokens) {
    check_count(count, tokens, event.finish);
  }
  return {.ids = std::move(event.ids), .finish = std::move(event.finish)};
}

}  // namespace decodelab
