// Turns the calls of a worker into rounds of streams.
#include "bench/measure/serving/http_worker.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/measure/cell_check.h"
#include "bench/measure/serving/served_cell.h"
#include "bench/measure/warmup.h"
#include "bench/plan/step_scope.h"
#include "bench/plan/sweep_plan.h"
#include "engine/checkpoint/model_config.h"
#include "reports/store/flags.h"

namespace decodelab {
namespace {

/// Decode steps that are counted, and prefills or completions.
constexpr std::int64_t kProbedDecodeSteps = 16;
constexpr std::int64_t kProbedSteps = 3;

/// Returns a dtype as PyTorch and its servers write it.
std::string torch_name(const std::string& dtype) {
  switch (dtype_from_name(dtype)) {
    case ElementType::float32: return "float32";
    case ElementType::float16: return "float16";
    case ElementType::bfloat16: return "bfloat16";
  }
  return dtype;
}

/// Steps of one round of a warm-up: streams are not broken off, and a round of more steps may be longer than needed.
std::int64_t warmup_round(const CellRecord& cell) { return cell.phase == Phase::decode ? kWarmupWindow : 1; }

class HttpVisit final : public OpenVisit {
 public:
  HttpVisit(CompletionServer& server, const CellRecord& cell, const ServedInput& input, std::int64_t& next_prompt)
      : record_(cell), cell_(server, cell, input, next_prompt) {
    Warmup warmup;
    // Requests of one round of phase batching are many completions, and a step that is as good as another.
    const bool serves = cell.phase == Phase::batching;
    do {
      const ServedSteps round = cell_.round(warmup_round(cell));
      for (const std::int64_t sample : round.samples_ns) {
        warmup.add(serves ? round.wall_ns : sample);
      }
    } while (!serves && !warmup.done());
    times_.warmup_steps = warmup.steps();
    times_.warmup_ns = warmup.total_ns();
    times_.quiet = serves || warmup.quiet();
  }

  void time_slice(std::int64_t steps) override {
    const ServedSteps timed = cell_.run(steps);
    std::ranges::for_each(timed.samples_ns, [this](std::int64_t sample_ns) { check_sample(record_, sample_ns); });
    times_.wall_ns += timed.wall_ns;
    times_.samples_ns.insert(times_.samples_ns.end(), timed.samples_ns.begin(), timed.samples_ns.end());
    if (cell_.counts().bundled_tokens > 0) {
      times_.flags = {kTokensBundledFlag};
    }
  }
  const VisitTimes& times() const override { return times_; }

 private:
  const CellRecord& record_;
  ServedCell cell_;
  VisitTimes times_;
};

class HttpWorker final : public Worker {
 public:
  HttpWorker(const ServerOptions& options, const WorkerLoad& load)
      : server_(options, {{"model", load.model},
                          {"dtype", load.dtype},
                          {"torch_dtype", torch_name(load.dtype)},
                          {"threads", std::to_string(load.threads)},
                          {"seed", std::to_string(load.seed)}}),
        // A server that runs already may hold prompts of the process before this one.
        next_prompt_(options.url ? monotonic_ns() : 1) {
    input_.max_tokens = load.max_tokens;
    input_.positions = load_model_config(load.model).positions;
    server_.make_ready();
  }

  std::int64_t bytes_needed(const CellRecord& /*cell*/) const override { return 0; }
  void use_prompts(const std::vector<std::vector<std::int64_t>>& prompts) override { input_.prompts = prompts; }
  void use_requests(const BatchWork& work) override { input_.work = work; }

  OutputTrace outputs(const CellRecord& cell, std::int64_t steps, const OutputTrace* forced) override {
    check(cell);
    if (forced != nullptr) {
      throw WorkerError(RowStatus::unsupported, "a server cannot be fed the tokens of another engine");
    }
    if (cell.phase == Phase::batching && cell.dtype == "fp32") {
      return answers(cell, steps);
    }
    const bool decodes = cell.phase == Phase::decode;
    const std::vector<std::int64_t> tokens(input_.prompts.size(), steps + (decodes ? 1 : 0));
    const auto rows = server_.choices(input_.prompts, tokens, input_.prompts.size());
    OutputTrace trace{.batch = std::ssize(rows)};
    for (std::size_t token = 0; token < static_cast<std::size_t>(tokens.front()); ++token) {
      std::vector<std::int64_t>& step = decodes && token == 0 ? trace.first : trace.tokens.emplace_back();
      for (const std::vector<std::int64_t>& row : rows) {
        step.push_back(row[token]);
      }
    }
    return trace;
  }

  Probe probe(const CellRecord& cell) override {
    check(cell);
    ServedCell served(server_, cell, input_, next_prompt_);
    served.round(warmup_round(cell));  // The first one pays for what is made lazily.
    const ServedCounts before = served.counts();
    Probe probe{.step_ns = std::numeric_limits<std::int64_t>::max()};
    const std::int64_t most = cell.phase == Phase::decode     ? kProbedDecodeSteps
                              : cell.phase == Phase::batching ? 1
                                                              : kProbedSteps;
    while (served.counts().steps - before.steps < most) {
      const ServedSteps round = served.round(most);
      const bool serves = cell.phase == Phase::batching;
      const std::int64_t fastest = serves ? round.wall_ns : *std::ranges::min_element(round.samples_ns);
      probe.step_ns = std::min(probe.step_ns, fastest);
    }
    const ServedCounts& after = served.counts();
    const std::int64_t steps = after.steps - before.steps;
    const auto count = [&](const char* name, std::int64_t value) {
      if (value != 0) {
        probe.counters[name] = value;
      }
    };
    count("counted_steps", steps);
    count(kBundledTokens, after.bundled_tokens);
    count(kReadTogether, after.read_together);
    count(kClientCpuNs, (after.client_cpu_ns - before.client_cpu_ns) / steps);
    count(kEmptyRoundTripNs, server_.empty_round_trip_ns());
    if (cell.phase == Phase::batching) {
      count("new_tokens", input_.work.new_tokens());
    }
    return probe;
  }

  std::unique_ptr<OpenVisit> open_visit(const CellRecord& cell) override {
    check(cell);
    return std::make_unique<HttpVisit>(server_, cell, input_, next_prompt_);
  }

  bool times_slices() const override { return false; }
  std::string settings_json() const override { return server_.settings_json(); }
  SideWork side_work() const override { return {.loading_ns = server_.starting_ns()}; }

 private:
  /// Refuses cells whose steps are not those of a server.
  void check(const CellRecord& cell) const {
    if (cell.phase == Phase::batching) {
      if (input_.work.planned.empty()) {
        throw WorkerError(RowStatus::unsupported,
                          "the program that started the worker sends no requests of phase batching, as one of this "
                          "version does");
      }
      return;
    }
    if (!scope_of_cell(cell.phase, cell.scope).serving) {
      throw WorkerError(RowStatus::unsupported,
                        fmt::format("the worker asks a server over HTTP, whose steps are of scope serving and not of "
                                    "scope {}: pass --scope serving",
                                    cell.scope));
    }
    if (input_.prompts.empty() || std::ssize(input_.prompts) != cell.batch) {
      throw WorkerError(RowStatus::failed,
                        fmt::format("expected {} prompts of the cell, got {}", cell.batch, input_.prompts.size()));
    }
  }

  /// Answers the requests of a cell. A step of the trace has a token of each request, or -1 of one that has ended.
  OutputTrace answers(const CellRecord& cell, std::int64_t steps) {
    std::vector<std::int64_t> tokens;
    std::int64_t longest = 0;
    for (const PlannedRequest& request : input_.work.planned) {
      tokens.push_back(request.new_tokens);
      longest = std::max(longest, request.new_tokens);
    }
    const auto rows = server_.choices(input_.work.prompts, tokens, static_cast<std::size_t>(cell.batch));
    OutputTrace trace{.batch = std::ssize(rows)};
    for (std::size_t step = 0; step < static_cast<std::size_t>(std::min(longest, steps)); ++step) {
      std::vector<std::int64_t>& of_step = trace.tokens.emplace_back();
      for (const std::vector<std::int64_t>& row : rows) {
        of_step.push_back(step < row.size() ? row[step] : -1);
      }
    }
    return trace;
  }

  CompletionServer server_;
  ServedInput input_;
  std::int64_t next_prompt_;
};

}  // namespace

WorkerHello http_hello(const ServerOptions& options, std::string version) {
  return {.engine = options.api == ServerApi::llama_cpp ? "llama-server" : "openai-server",
          .version = std::move(version),
          .settings_json = nlohmann::json{{"client", "decodelab"}}.dump(),
          .phases = {"prefill", "decode", "generate", "batching"},
          .scopes = {"serving"},
          .fills = {"generated"},
          .dtypes = {"fp32", "fp16", "bf16"},
          .devices = {"cpu", "cuda"},
          .exact = false,
          .forced = false,
          .slices = false};
}

std::unique_ptr<Worker> make_http_worker(const ServerOptions& options, const WorkerLoad& load) {
  return std::make_unique<HttpWorker>(options, load);
}

}  // namespace decodelab
