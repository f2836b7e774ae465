// Turns the calls of a worker into requests, and checks the replies.
#include "bench/measure/process/process_worker.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "bench/measure/steps.h"
#include "bench/measure/warmup.h"
#include "bench/plan/batch_work.h"
#include "bench/plan/cell_fill.h"
#include "bench/plan/prompts.h"
#include "bench/plan/sampling_json.h"
#include "bench/plan/step_scope.h"

namespace decodelab {
namespace {

constexpr std::chrono::milliseconds kFarewell{2000};

void require(std::string_view what, const std::string& wanted, const std::vector<std::string>& offered) {
  if (std::ranges::find(offered, wanted) == offered.end()) {
    throw WorkerError(RowStatus::unsupported,
                      fmt::format("the worker has no {} {}; it has {}", what, wanted, fmt::join(offered, ", ")));
  }
}

}  // namespace

ProcessWorker::~ProcessWorker() {
  if (process_) {
    process_->end(kFarewell);
  }
}

std::string ProcessWorker::ask(const std::string& request) {
  try {
    std::string reply = process_->ask(request, options_.reply_limit);
    const SideWork side = parse_side_work(reply);
    side_work_.loading_ns += side.loading_ns;
    side_work_.packing_ns += side.packing_ns;
    side_work_.filling_ns += side.filling_ns;
    return reply;
  } catch (const std::runtime_error&) {
    ++deaths_;
    process_.reset();
    prepared_.clear();
    throw;
  }
}

void ProcessWorker::begin_start() {
  if (!process_ && deaths_ < kMostDeaths) {
    process_.emplace(options_.command, options_.places);
    greeted_ = false;
  }
}

void ProcessWorker::start() {
  if (process_ && greeted_) {
    return;
  }
  if (deaths_ >= kMostDeaths) {
    throw WorkerDied(
        fmt::format("the worker died {} times and was given up; its command was: {}", deaths_, options_.command));
  }
  begin_start();
  try {
    hello_ = parse_hello(ask(hello_request()));
    require("device", options_.load.device.substr(0, options_.load.device.find(':')), hello_->devices);
    require("dtype", options_.load.dtype, hello_->dtypes);
    auto settings = parse_json(hello_->settings_json);
    const WorkerLoaded loaded = parse_loaded(ask(load_request(options_.load)));
    settings.update(parse_json(loaded.settings_json));
    logit_bound_ = loaded.logit_bound;
    hello_->settings_json = settings.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    if (options_.identified) {
      options_.identified(*hello_);
    }
  } catch (const WorkerError&) {
    // The process is alive but of no use.
    process_.reset();
    throw;
  }
  greeted_ = true;
  process_->stop();
}

void ProcessWorker::begin_end() {
  if (process_) {
    process_->begin_end();
  }
}

void ProcessWorker::prepare(const CellRecord& cell, const OutputTrace* fed) {
  require("phase", to_string(cell.phase), hello_->phases);
  if (const std::int64_t samples = options_.load.samples_of(cell); samples > 1 && !hello_->samples) {
    throw WorkerError(
        RowStatus::unsupported,
        fmt::format("{} samples of each prompt are asked for, and the worker completes a prompt once", samples));
  }
  if (options_.load.request.prefix && !hello_->prefixes) {
    throw WorkerError(RowStatus::unsupported, "@prefix: the worker keeps no prefixes of prompts");
  }
  if (std::string reason = unsupported_reason(options_.load.request, cell.phase); !reason.empty()) {
    throw WorkerError(RowStatus::unsupported, reason);
  }
  for (const std::string& name : used_parameters(options_.load.sampling)) {
    if (std::ranges::find(hello_->sampling, name) == hello_->sampling.end()) {
      throw WorkerError(RowStatus::unsupported,
                        fmt::format("the worker cannot sample with {}; it has {}", name,
                                    hello_->sampling.empty() ? "greedy choice alone"
                                                             : fmt::format("{}", fmt::join(hello_->sampling, ", "))));
    }
  }
  require("fill", kind_of_fill(cell_fill_from_string(cell.fill)), hello_->fills);
  const std::int64_t room = cell.phase == Phase::decode         ? std::min(options_.positions - cell.length,
                                                                           std::max(kMaximumSteps, kWarmupMaximumSteps))
                            : cell.phase == Phase::continuation ? options_.load.max_tokens
                                                                : options_.positions - cell.length + 1;
  std::vector<std::vector<std::int64_t>> prompts =
      fed != nullptr && !fed->prompts.empty()
          ? fed->prompts
          : cell_prompts(options_.prompts, static_cast<std::uint64_t>(options_.load.seed), cell.batch, cell.length,
                         options_.vocabulary);
  begin_alike(options_.load.request, cell.batch, prompts);
  const BatchWork work =
      cell.phase == Phase::batching
          ? batch_work(cell, static_cast<std::uint64_t>(options_.load.seed), options_.load.max_tokens, options_.prompts,
                       options_.load.request, options_.vocabulary)
          : BatchWork();
  std::string request = prepare_request(cell, options_.load, room, prompts, hello_->protocol, &work);
  if (request != prepared_) {
    const auto start = std::chrono::steady_clock::now();
    parse_prepared(ask(request));
    side_work_.filling_ns += std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
    prepared_ = std::move(request);
  }
}

void ProcessWorker::rest() {
  if (!process_) {
    return;
  }
  if (leaves_) {
    past_cpu_seconds_ += process_->cpu_seconds();
    process_->end(kFarewell);
    process_.reset();
    prepared_.clear();
  } else {
    process_->stop();
  }
}

template <typename Call>
auto ProcessWorker::going_on(std::chrono::milliseconds wake_up, Call&& call) {
  process_->go_on();
  std::this_thread::sleep_for(wake_up);
  struct Rest {
    ProcessWorker& worker;
    ~Rest() { worker.rest(); }
  } const at_the_end{*this};
  auto result = call();
  deaths_ = 0;
  return result;
}

template <typename Call>
auto ProcessWorker::awake(const CellRecord& cell, Call&& call, const OutputTrace* fed) {
  start();
  return going_on(kWakeUp, [&] {
    prepare(cell, fed);
    return call();
  });
}

OutputTrace ProcessWorker::outputs(const CellRecord& cell, std::int64_t steps, const OutputTrace* forced) {
  return ask_for_outputs(cell, steps, outputs_request(steps, forced, true), forced);
}

OutputTrace ProcessWorker::choices(const CellRecord& cell, std::int64_t steps, const OutputTrace* forced) {
  return ask_for_outputs(cell, steps, outputs_request(steps, forced, false), forced);
}

OutputTrace ProcessWorker::ask_for_outputs(const CellRecord& cell, std::int64_t steps, const std::string& request,
                                           const OutputTrace* fed) {
  // In fp32 a worker of phase batching answers the cell's requests; else it completes its prompts.
  const bool serves = cell.phase == Phase::batching && cell.dtype == "fp32" && fed == nullptr;
  const auto call = [&] {
    OutputTrace trace =
        parse_outputs(ask(request), cell.batch * (serves ? kRequestsOfARow : options_.load.samples_of(cell)));
    if (output_rule(cell) == OutputRule::tokens_only) {
      trace.logits.clear();
    }
    if (std::ssize(trace.tokens) > steps) {
      throw WorkerError(RowStatus::failed,
                        fmt::format("asked for the tokens of {} steps, got {}", steps, trace.tokens.size()));
    }
    return trace;
  };
  return awake(cell, call, fed);
}

Probe ProcessWorker::probe(const CellRecord& cell) {
  return awake(cell, [&] { return parse_counters(ask(counters_request())); });
}

VisitTimes ProcessWorker::ask_for_steps(std::int64_t steps, const std::string& request,
                                        VisitTimes (*parse)(std::string_view line)) {
  const auto start = std::chrono::steady_clock::now();
  VisitTimes times = parse(ask(request));
  const auto took = std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
  if (std::ssize(times.samples_ns) != steps) {
    throw WorkerError(RowStatus::failed,
                      fmt::format("asked for {} timed steps, got {}", steps, times.samples_ns.size()));
  }
  const std::int64_t sum = std::accumulate(times.samples_ns.begin(), times.samples_ns.end(), std::int64_t{0});
  if (sum > took || times.wall_ns > took) {
    throw WorkerError(RowStatus::failed, fmt::format("reported {} ns of steps in a call that took {} ns",
                                                     std::max(sum, times.wall_ns), took));
  }
  return times;
}

/// The visit of a worker that knows no slices: warm-up and all steps are one request.
class ProcessWorker::WholeVisit final : public OpenVisit {
 public:
  WholeVisit(ProcessWorker& worker, const CellRecord& cell) : worker_(worker), cell_(cell) {}

  void time_slice(std::int64_t steps) override {
    times_ = worker_.awake(cell_, [&] { return worker_.ask_for_steps(steps, visit_request(steps), parse_visit); });
  }
  const VisitTimes& times() const override { return times_; }

 private:
  ProcessWorker& worker_;
  const CellRecord& cell_;
  VisitTimes times_;
};

class ProcessWorker::SlicedVisit final : public OpenVisit {
 public:
  SlicedVisit(ProcessWorker& worker, const CellRecord& cell) : worker_(worker) {
    times_ = worker.awake(cell, [&] { return parse_begun(worker.ask(begin_request(cell.steps))); });
  }

  void time_slice(std::int64_t steps) override {
    const VisitTimes slice = worker_.going_on(
        std::chrono::milliseconds(0), [&] { return worker_.ask_for_steps(steps, slice_request(steps), parse_slice); });
    times_.wall_ns += slice.wall_ns;
    times_.samples_ns.insert(times_.samples_ns.end(), slice.samples_ns.begin(), slice.samples_ns.end());
    times_.flags = slice.flags;
  }
  const VisitTimes& times() const override { return times_; }

 private:
  ProcessWorker& worker_;
  VisitTimes times_;
};

std::unique_ptr<OpenVisit> ProcessWorker::open_visit(const CellRecord& cell) {
  start();
  if (cell.in_slices() && times_slices()) {
    return std::make_unique<SlicedVisit>(*this, cell);
  }
  return std::make_unique<WholeVisit>(*this, cell);
}

OutputRule ProcessWorker::output_rule(const CellRecord& cell) const {
  if (hello_ && hello_->exact) {
    return Worker::output_rule(cell);
  }
  return hello_ && !hello_->forced ? OutputRule::tokens_only : OutputRule::teacher_forced;
}

double ProcessWorker::cpu_seconds() const { return past_cpu_seconds_ + (process_ ? process_->cpu_seconds() : 0); }

}  // namespace decodelab
