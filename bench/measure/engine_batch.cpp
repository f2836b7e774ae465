// A clock of arrivals beside a loop of steps.
#include "bench/measure/engine_batch.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>

namespace decodelab {
namespace {

using Clock = std::chrono::steady_clock;

/// Waits as timed_ns() does for an arm that is slow on purpose.
void wait_busily(std::int64_t ns) {
  const auto end = Clock::now() + std::chrono::nanoseconds(ns);
  while (ns > 0 && Clock::now() < end) {
  }
}

/// Serves requests once.
class Server {
 public:
  Server(const Engine& engine, const BatchWork& work, const ServeOptions& options)
      : work_(work),
        options_(options),
        prefixes_(store_for(engine, options)),
        batch_(engine, {.max_rows = options.max_rows,
                        .vocabulary = options.vocabulary,
                        .texts = options.texts,
                        .prefixes = prefixes_.get()}),
        first_(work.planned.size()) {
    result_.times.resize(work.planned.size());
    result_.tokens.resize(work.planned.size());
  }

  ServedRequests run() {
    start_ = Clock::now();
    std::size_t next = 0;
    std::size_t answered = 0;
    while (answered < work_.planned.size()) {
      for (; next < work_.planned.size() && has_come(next); ++next) {
        submit(next);
      }
      if (batch_.idle()) {
        wait_for(next);
        continue;
      }
      answered += batch_.step().size();
      wait_busily(options_.slow_ns);
      ++steps_;
    }
    result_.wall_ns = since(start_);
    result_.counts = batch_.counts();
    return std::move(result_);
  }

 private:
  static std::unique_ptr<PrefixStore> store_for(const Engine& engine, const ServeOptions& options) {
    return options.request.prefix && engine.reuses_prefixes()
               ? std::make_unique<PrefixStore>(engine, std::numeric_limits<std::int64_t>::max())
               : nullptr;
  }

  static std::int64_t since(Clock::time_point from) { return std::chrono::nanoseconds(Clock::now() - from).count(); }

  bool at_once() const { return options_.request_rate == 0; }
  bool by_steps() const { return options_.clock == ArrivalClock::decode_steps; }

  Clock::time_point due(std::size_t request) const {
    if (at_once() || by_steps()) {
      return start_;
    }
    const double seconds = work_.planned[request].arrival / options_.request_rate;
    return start_ + std::chrono::nanoseconds(std::llround(1e9 * seconds));
  }

  bool has_come(std::size_t request) const {
    if (at_once()) {
      return true;
    }
    if (by_steps()) {
      // A row is free again after as many steps as a completion has tokens.
      const double gap = static_cast<double>(options_.max_tokens) / static_cast<double>(options_.max_rows);
      return work_.planned[request].arrival * gap <= static_cast<double>(steps_);
    }
    return due(request) <= Clock::now();
  }

  void wait_for(std::size_t request) {
    if (by_steps()) {
      ++steps_;
    } else {
      std::this_thread::sleep_until(due(request));
    }
  }

  void submit(std::size_t request) {
    batch_.submit({.prompt = work_.prompts[request],
                   .max_tokens = work_.planned[request].new_tokens,
                   .sampling = options_.sampling,
                   .rules = options_.request.rules(),
                   .details = options_.request.details(),
                   .stops = [this, request](std::size_t, std::int64_t token_id) {
                     take(request, token_id);
                     return false;
                   }});
  }

  void take(std::size_t request, std::int64_t token_id) {
    const Clock::time_point now = Clock::now();
    RequestTimes& times = result_.times[request];
    if (times.tokens == 0) {
      times.first_ns = std::chrono::nanoseconds(now - due(request)).count();
      first_[request] = now;
    }
    times.later_ns = std::chrono::nanoseconds(now - first_[request]).count();
    ++times.tokens;
    result_.tokens[request].push_back(token_id);
  }

  const BatchWork& work_;
  const ServeOptions& options_;
  std::unique_ptr<PrefixStore> prefixes_;
  ContinuousBatch batch_;
  Clock::time_point start_;
  std::int64_t steps_ = 0;
  std::vector<Clock::time_point> first_;  ///< When the first token of each request came.
  ServedRequests result_;
};

}  // namespace

BatchWork batch_work(const CellInput& input, const CellRecord& cell, std::int64_t vocabulary_size) {
  return batch_work(cell, input.seed, input.max_tokens, input.prompts, input.request, vocabulary_size);
}

ServedRequests serve(const Engine& engine, const BatchWork& work, const ServeOptions& options) {
  return Server(engine, work, options).run();
}

}  // namespace decodelab
