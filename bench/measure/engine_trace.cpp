// Runs the window of a trace on the engine, then visits with and without it.
#include "bench/measure/engine_trace.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "bench/machine/environment.h"
#include "bench/measure/engine_cell.h"
#include "bench/measure/engine_ranks.h"
#include "bench/measure/timed_step.h"
#include "bench/measure/torch_build.h"
#include "bench/measure/torch_roofline.h"
#include "bench/measure/torch_trace.h"
#include "bench/measure/trace_window.h"
#include "bench/measure/warmup.h"
#include "bench/plan/modelled_work.h"
#include "profiles/collect/device_collectors.h"
#include "profiles/collect/nvtx.h"
#include "profiles/collect/soft_perf.h"
#include "profiles/collect/span_collector.h"
#include "reports/statistics/estimates.h"

namespace decodelab {
namespace {

/// A step may record some more than the one that was counted: a cache that grows, a prefix that is padded.
constexpr double kRoomForMore = 1.5;
constexpr std::int64_t kSpareRows = 4096;

/// Pairs of visits: as many as fit into the time, within the limits; the fewest still give an interval.
constexpr std::int64_t kPairsNs = 2'000'000'000;
constexpr std::int64_t kFewestPairs = 8;
constexpr std::int64_t kMostPairs = 64;

/// Reads that measure the bandwidth: each takes some tens of milliseconds, and the fastest one counts.
constexpr std::int64_t kBandwidthBytes = std::int64_t{256} << 20;
constexpr int kBandwidthReads = 3;
/// Memory that must be available before the bandwidth is measured, which allocates 1 GiB.
constexpr std::int64_t kBandwidthHeadroomBytes = 2 * kRooflineBufferBytes;

bool is_cpu(const std::string& device) { return device == "cpu"; }

/// Runs a cell step by step as a timed visit does, and restarts it where it has no more room.
class StepSource {
 public:
  StepSource(const Engine& engine, const Arm& arm, const CellInput& input, const CellRecord& cell, std::int64_t steps)
      : engine_(engine),
        cell_(cell),
        steps_(cell.phase == Phase::decode ? std::min(steps, decode_room(engine.model().config(), cell)) : 1),
        slow_ns_(arm.slow_ns),
        runner_(engine, input, cell, arm.slow_ns, snapshots_) {}

  void warm_up() {
    Warmup warmup;
    while (!warmup.done()) {
      if (!runner_.has_room()) {
        runner_.prepare(std::min(decode_room(engine_.model().config(), cell_), kWarmupMaximumSteps));
      }
      warmup.add(runner_.timed_step().wall_ns);
    }
  }

  /// Goes back to the start of the cell.
  void prepare() {
    runner_.prepare(steps_);
    done_ = 0;
  }

  /// Restarts the cell where there is no room for a step, and describes the step that run() will run.
  Step next(std::int64_t index) {
    if (!runner_.has_room()) {
      prepare();
    }
    return {.index = static_cast<std::int32_t>(index),
            .batch = cell_.batch,
            .keys = cell_.phase == Phase::decode ? cell_.length + done_ : cell_.length};
  }

  /// Runs the step as a timed visit does; the span of the step includes the wait for the device.
  StepResult run(Step& step) {
    StepResult result;
    const std::string& device = engine_.model().device();
    step.start_ns = trace_clock_ns();
    step.timer_ns = timed_ns(
        [&] {
          const StepRange range(step.index);
          result = runner_.step();
          if (!is_cpu(device)) {
            in_stage(Stage::host, [&] { synchronize(device); });
          }
        },
        device, slow_ns_);
    step.end_ns = trace_clock_ns();
    ++done_;
    return result;
  }

 private:
  const Engine& engine_;
  const CellRecord& cell_;
  std::int64_t steps_;
  std::int64_t slow_ns_;
  CacheSnapshots snapshots_;
  CellRunner runner_;
  std::int64_t done_ = 0;
};

/// The collectors of one device; `spans` is the one of them that others write into.
struct Collectors {
  TraceWindow window;
  SpanCollector* spans;
  DeviceCollectors& devices;
};

Collectors make_collectors(const Engine& engine, std::int64_t spans, DeviceCollectors& devices) {
  const std::string& device = engine.model().device();
  auto owned = std::make_unique<SpanCollector>(spans);
  SpanCollector* const made = owned.get();
  std::vector<std::unique_ptr<Collector>> list;
  list.push_back(make_soft_perf_collector());
  if (!is_cpu(device)) {
    list.push_back(devices.nvml());
  }
  if (engine.ranks() > 1) {
    list.push_back(std::make_unique<RankCollector>(engine));
  }
  list.push_back(std::move(owned));
  list.push_back(std::make_unique<OperatorCollector>(*made, device));
  if (!is_cpu(device)) {
    list.push_back(devices.cupti());
  }
  return {.window = TraceWindow(std::move(list)), .spans = made, .devices = devices};
}

std::int64_t rows_of(const TraceEvents& events) {
  return static_cast<std::int64_t>(events.spans.size() + events.api_calls.size() + events.operations.size() +
                                   events.waits.size() + events.overheads.size() + events.counters.size());
}

/// Runs steps with all collectors on; `tokens` may be null.
void run_window(StepSource& source, Collectors& collectors, const TraceConfig& config, std::int64_t steps,
                TraceEvents& events, std::vector<std::vector<std::int64_t>>* tokens) {
  TraceWindow& window = collectors.window;
  window.start(config);
  events.session.window_start_ns = trace_clock_ns();
  for (std::int64_t index = 0; index < steps; ++index) {
    Step step = source.next(index);
    window.begin_step(step);
    const std::optional<LaunchCounts> before = collectors.devices.launches();
    const std::int64_t replays_before = collectors.spans->main_thread()->amount(Amount::graph_launches);
    StepResult result = source.run(step);
    if (before) {
      step.launches = collectors.devices.launches()->launches - before->launches;
      // The engine's own count, which that of CUPTI is compared with.
      step.graph_launches = collectors.spans->main_thread()->amount(Amount::graph_launches) - replays_before;
      events.session.launches_counted = true;
    }
    window.end_step(step);
    events.steps.push_back(std::move(step));
    if (tokens != nullptr) {
      tokens->push_back(std::move(result.token_ids));
    }
  }
  events.session.window_end_ns = trace_clock_ns();
  window.stop();
  window.drain(events);
}

/// Returns the statistic of a visit's steps that the timed passes use.
double visit_ns(const std::vector<Step>& steps) {
  std::vector<std::int64_t> samples;
  for (const Step& step : steps) {
    samples.push_back(step.timer_ns);
  }
  return visit_statistic(samples);
}

/// Measures the ratio of traced to untraced visits, in pairs whose order alternates.
Perturbation measure_perturbation(StepSource& source, Collectors& collectors, const TraceConfig& config,
                                  std::int64_t steps, std::optional<std::int64_t> asked) {
  const auto traced = [&] {
    TraceEvents scratch;
    source.prepare();
    run_window(source, collectors, config, steps, scratch, nullptr);
    return visit_ns(scratch.steps);
  };
  const auto untraced = [&] {
    std::vector<Step> visited;
    source.prepare();
    for (std::int64_t index = 0; index < steps; ++index) {
      Step step = source.next(index);
      source.run(step);
      visited.push_back(std::move(step));
    }
    return visit_ns(visited);
  };
  const double first = untraced();
  const std::int64_t pairs = asked.value_or(
      std::clamp(kPairsNs / std::max<std::int64_t>(1, std::llround(2 * first * static_cast<double>(steps))),
                 kFewestPairs, kMostPairs));
  std::vector<double> logarithms;
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const bool traced_first = pair % 2 == 0;
    const double one = traced_first ? traced() : untraced();
    const double other = traced_first ? untraced() : traced();
    logarithms.push_back(traced_first ? std::log(one / other) : std::log(other / one));
  }
  if (logarithms.empty()) {
    return {};
  }
  const double middle = mean(logarithms);
  const Interval interval = mean_interval(logarithms).value_or(Interval{.low = middle, .high = middle});
  return {.ratio = std::exp(middle), .low = std::exp(interval.low), .high = std::exp(interval.high), .pairs = pairs};
}

/// Writes the modelled bytes of a stage to the first span of that stage in its layer and step. Completions have no
/// modelled bytes, and neither have the layers of an encoder, nor a rank's part of a model.
void add_expected_bytes(TraceEvents& events, const Engine& engine, const CellRecord& cell) {
  const ModelConfig& config = engine.model().config();
  if (cell.phase == Phase::generate || cell.phase == Phase::continuation || config.encoder || engine.ranks() > 1) {
    return;
  }
  std::vector<StageBytes> of_step;
  for (const Step& step : events.steps) {
    of_step.push_back(modelled_stage_bytes(config, cell, step.keys, engine.coded_bytes()));
  }
  std::vector<HostSpan*> stages;
  for (HostSpan& span : events.spans) {
    if (span.kind == SpanKind::stage && span.step >= 0 && static_cast<std::size_t>(span.step) < of_step.size()) {
      stages.push_back(&span);
    }
  }
  std::ranges::sort(stages, {}, &HostSpan::start_ns);
  std::set<std::tuple<std::int32_t, std::int32_t, Stage>> seen;
  for (HostSpan* span : stages) {
    if (seen.emplace(span->step, span->layer, span->stage).second) {
      const StageBytes& bytes = of_step[static_cast<std::size_t>(span->step)];
      const StageBytes::ByStage& of =
          span->layer == kNoLayer ? bytes.outside : bytes.layers.at(static_cast<std::size_t>(span->layer));
      span->expected_bytes = of[static_cast<std::size_t>(span->stage)];
    }
  }
}

double read_bandwidth() {
  std::int64_t best = read_memory_ns(kBandwidthBytes);  // The first call makes the buffer.
  for (int read = 0; read < kBandwidthReads; ++read) {
    best = std::min(best, read_memory_ns(kBandwidthBytes));
  }
  return 1e9 * static_cast<double>(kBandwidthBytes) / static_cast<double>(best);
}

std::string random_uuid() {
  std::string uuid;
  std::ifstream("/proc/sys/kernel/random/uuid") >> uuid;
  return uuid;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string cell_words(const CellRecord& cell) {
  return fmt::format("{} b={} length={} {} {}", to_string(cell.phase), cell.batch, cell.length, cell.dtype,
                     cell.device);
}

void describe(TraceSession& session, const Arm& arm, const CellRecord& cell, const TraceRequest& request) {
  const BuildRecord build = this_build();
  session.uuid = random_uuid();
  session.host = host_name();
  session.process = getpid();
  session.main_thread = gettid();
  session.unix_offset_ns = unix_ns() - trace_clock_ns();
  session.tier = request.tier;
  session.model = request.model;
  session.arm = arm.label;
  session.cell = cell_words(cell);
  session.device = is_cpu(cell.device) ? "cpu" : "cuda";
  session.versions = {{"commit", build.commit}, {"compiler", build.compiler}, {"libtorch", build.libtorch}};
  if (!build.cuda.empty()) {
    session.versions.emplace_back("cuda", build.cuda);
  }
}

}  // namespace

TracedCell trace_cell(const Engine& engine, const Arm& arm, const CellInput& input, const CellRecord& cell,
                      const TraceRequest& request) {
  if (request.steps < 1) {
    throw std::invalid_argument(fmt::format("--steps: a trace needs at least 1 step, got {}", request.steps));
  }
  DeviceCollectors devices(cell.device);  // Made before sessions, since it must see graphs being captured.
  std::optional<NvtxRanges> nvtx;
  if (NvtxRanges::tool_attached()) {
    nvtx.emplace();
  }
  StepSource source(engine, arm, input, cell, request.steps);
  source.warm_up();

  // A trial step says how much room the others need.
  const TraceConfig config{.tier = request.tier, .most_events = request.most_events};
  TraceEvents trial;
  {
    Collectors collectors = make_collectors(engine, SpanCollector::kUsualSpans, devices);
    source.prepare();
    run_window(source, collectors, config, 1, trial, nullptr);
  }
  const std::int64_t rows = rows_of(trial) + trial.session.dropped_records;
  if (rows > request.most_events / request.steps) {
    throw std::invalid_argument(fmt::format(
        "--steps: one step of this cell records {} rows at tier {}, and {} steps more than {}, which no viewer opens: "
        "take at most {} steps, or a lower tier",
        rows, static_cast<int>(request.tier), request.steps, request.most_events,
        request.most_events / std::max<std::int64_t>(rows, 1)));
  }

  const auto room = static_cast<std::int64_t>(kRoomForMore * static_cast<double>(rows * request.steps)) + kSpareRows;
  Collectors collectors = make_collectors(engine, room, devices);
  TraceEvents events;
  TracedCell traced;
  describe(events.session, arm, cell, request);
  source.prepare();
  if (nvtx) {
    nvtx->enter_window();
  }
  run_window(source, collectors, config, request.steps, events, &traced.token_ids);
  if (nvtx) {
    nvtx->leave_window();
  }
  events.session.collectors.push_back({.name = "nvtx", .on = nvtx.has_value(), .reason = NvtxRanges::why_not()});
  if (!request.pairs || *request.pairs > 0) {
    events.session.perturbation = measure_perturbation(source, collectors, config, request.steps, request.pairs);
  }
  add_expected_bytes(events, engine, cell);
  if (is_cpu(cell.device) && request.measure_bandwidth && available_memory_bytes() > kBandwidthHeadroomBytes) {
    events.session.devices.push_back({.name = detect_machine().cpu, .measured_bytes_per_second = read_bandwidth()});
  }
  traced.trace = seal(std::move(events));
  traced.quality = verify(traced.trace);
  traced.attribution = attribute(traced.trace, traced.quality);
  return traced;
}

std::vector<CollectorState> trace_collectors() {
  std::vector<CollectorState> states;
  const auto add = [&states](Collector& collector) {
    const Capability capability = collector.probe();
    states.push_back({.name = collector.name(), .on = capability.available, .reason = capability.reason});
  };
  SpanCollector spans;
  OperatorCollector operators(spans, "cpu");
  add(spans);
  add(operators);
  add(*make_soft_perf_collector());
  // Probed as for a GPU; where there is none, that is the reason.
  DeviceCollectors devices("cuda:0");
  add(*devices.nvml());
  add(*devices.cupti());
  states.push_back({.name = "nvtx", .on = NvtxRanges::tool_attached(), .reason = NvtxRanges::why_not()});
  return states;
}

}  // namespace decodelab
