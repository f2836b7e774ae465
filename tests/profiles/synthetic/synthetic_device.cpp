// A synthetic decode on a device: each operation ends when the next launch's cause wants it to.
#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "profiles/trace/device_time.h"
#include "tests/profiles/synthetic/synthetic_engine.h"

namespace decodelab {
namespace {

constexpr std::uint64_t kCapturedGraph = 3;
constexpr std::uint64_t kReplayedGraph = 7;
constexpr std::uint64_t kFirstClone = 1000;
constexpr std::int32_t kStream = 7;
constexpr std::uint32_t kLaunchCallback = 211;
constexpr std::uint32_t kGraphLaunchCallback = 311;
constexpr std::uint32_t kCopyCallback = 41;
constexpr std::uint32_t kSynchronizeCallback = 131;
/// What a stamp of the host needs to lie strictly inside of a span.
constexpr std::int64_t kMarginNs = 20;

constexpr std::array<GapCause, 6> kDrawnCauses{GapCause::sync,       GapCause::dispatch, GapCause::launch_latency,
                                               GapCause::dependency, GapCause::tool,     GapCause::unknown};

class DeviceEngine {
 public:
  DeviceEngine(const SyntheticShape& shape, SyntheticTrace& trace)
      : shape_(shape), events_(trace.events), truth_(trace.truth), clock_(shape) {}

  void run() {
    if (shape_.graph) {
      capture();
    }
    for (int i = 0; i < shape_.steps; ++i) {
      step(i);
      clock_.pass(200, 900);
    }
  }

 private:
  SyntheticStep& truth() { return truth_.back(); }
  void gap(GapCause cause, std::int64_t ns) { truth().gap_ns[static_cast<std::size_t>(cause)] += ns; }
  DeviceOperation& last() { return events_.operations.back(); }

  void end_last(std::int64_t end_ns) {
    last().end_ns = end_ns;
    truth().busy_ns += end_ns - last().start_ns;
  }

  /// Originals know their layer and stage; what replays are clones.
  void capture() {
    std::uint64_t node = 1;
    for (int layer = 0; layer < shape_.layers; ++layer) {
      for (int i = 0; i < shape_.kernels_per_layer; ++i, ++node) {
        events_.nodes.push_back({.graph_id = kCapturedGraph, .node_id = node, .layer = layer, .stage = stage_at(i)});
        events_.nodes.push_back({.graph_id = kReplayedGraph, .node_id = kFirstClone + node, .original_node_id = node});
      }
    }
  }

  static Stage stage_at(int i) { return kSyntheticStages[static_cast<std::size_t>(i) % kSyntheticStages.size()]; }
  static std::string kernel_name(Stage stage, int i) {
    return fmt::format("{}_kernel_{}", kStageNames[static_cast<std::size_t>(stage)], i);
  }

  void step(int index) {
    step_ = index;
    first_ = true;
    truth_.emplace_back();
    const std::size_t span = begin_span(events_, clock_, {.step = index, .kind = SpanKind::step}, "step");
    step_start_ns_ = clock_.now_ns;
    clock_.pass(20, 300);
    launch_in_stage(Stage::embed, kNoLayer, "embed_kernel", DeviceOperationKind::kernel);
    if (shape_.graph) {
      replay();
    }
    for (int layer = 0; !shape_.graph && layer < shape_.layers; ++layer) {
      run_layer(layer);
    }
    read_token();
    clock_.pass(100, 900);
    const std::int64_t ns = end_span(events_, clock_, span);
    gap(GapCause::edge, clock_.now_ns - last().end_ns);
    SyntheticStep& account = truth();
    account.span_ns = ns;
    account.residual_ns = ns;
    for (const std::int64_t stage_ns : account.host_stage_ns) {
      account.residual_ns -= stage_ns;
    }
    const std::int64_t replays = shape_.graph ? 1 : 0;
    events_.steps.push_back({.index = index,
                             .start_ns = step_start_ns_,
                             .end_ns = clock_.now_ns,
                             .batch = 8,
                             .keys = 128 + index,
                             .launches = account.launches - replays,
                             .graph_launches = replays,
                             .timer_ns = ns + clock_.draw(0, ns / 1000)});
  }

  void run_layer(int layer) {
    const std::size_t span =
        begin_span(events_, clock_, {.step = step_, .layer = layer, .kind = SpanKind::layer}, "layer");
    for (int i = 0; i < shape_.kernels_per_layer; ++i) {
      clock_.pass(0, 60);
      launch_in_stage(stage_at(i), layer, kernel_name(stage_at(i), i), DeviceOperationKind::kernel);
    }
    clock_.pass(0, 60);
    end_span(events_, clock_, span);
  }

  std::size_t begin_stage(Stage stage, int layer) {
    const HostSpan what{.step = step_, .layer = layer, .kind = SpanKind::stage, .stage = stage, .expected_bytes = 100};
    return begin_span(events_, clock_, what, kStageNames[static_cast<std::size_t>(stage)]);
  }

  void end_stage(std::size_t span) {
    clock_.pass(10, 60);
    truth().host_stage_ns[static_cast<std::size_t>(events_.spans[span].stage)] += end_span(events_, clock_, span);
  }

  void launch_in_stage(Stage stage, int layer, const std::string& name, DeviceOperationKind kind) {
    const std::size_t span = begin_stage(stage, layer);
    clock_.pass(10, 60);
    const std::size_t around =
        begin_span(events_, clock_, {.kind = SpanKind::operator_call, .allocations = 1}, "aten::" + name);
    ++truth().operators;
    const bool copy = kind == DeviceOperationKind::copy;
    launch(copy ? ApiKind::copy : ApiKind::launch,
           {.name = events_.strings.id(name), .kind = kind, .bytes = copy ? 8 * 8 : 0, .copy_kind = copy ? 2 : 0});
    clock_.pass(10, 60);
    end_span(events_, clock_, around);
    end_stage(span);
  }

  /// One launch; all nodes but the first follow on the device.
  void replay() {
    clock_.pass(10, 60);
    std::uint64_t node = 1;
    for (int layer = 0; layer < shape_.layers; ++layer) {
      for (int i = 0; i < shape_.kernels_per_layer; ++i, ++node) {
        DeviceOperation operation{.graph_id = kReplayedGraph,
                                  .graph_node_id = kFirstClone + node,
                                  .name = events_.strings.id(kernel_name(stage_at(i), i))};
        if (node == 1) {
          launch(ApiKind::graph_launch, operation);
          continue;
        }
        end_last(last().start_ns + clock_.draw(500, 5000));
        const std::int64_t wait_ns = clock_.draw(0, 1200);
        gap(GapCause::dependency, wait_ns);
        add_operation(operation, last().end_ns + wait_ns, last().correlation);
      }
    }
  }

  /// Copies the token back and waits for it, as greedy decoding does.
  void read_token() {
    launch_in_stage(Stage::choice, kNoLayer, "copy_token", DeviceOperationKind::copy);
    const std::size_t span = begin_stage(Stage::choice, kNoLayer);
    synchronize();
    end_stage(span);
  }

  /// Waits for the last operation, which ends within the wait. Returns when the call did.
  std::int64_t synchronize() {
    clock_.pass(20, 100);
    const std::int64_t start_ns = clock_.now_ns;
    end_last(std::max(last().start_ns + 300, start_ns + kMarginNs + clock_.draw(0, 3000)));
    const std::int64_t wait_end_ns = last().end_ns + clock_.draw(1000, 2000);
    events_.waits.push_back({.start_ns = start_ns + kMarginNs,
                             .end_ns = wait_end_ns,
                             .process = kSyntheticProcess,
                             .thread = kSyntheticThread,
                             .stream = kStream,
                             .correlation = ++correlation_});
    clock_.now_ns = wait_end_ns + kMarginNs;
    add_call(ApiKind::synchronize, start_ns, clock_.now_ns, correlation_);
    return clock_.now_ns;
  }

  void add_call(ApiKind kind, std::int64_t start_ns, std::int64_t end_ns, std::uint32_t correlation) {
    const char* name = "cudaLaunchKernel";
    std::uint32_t callback = kLaunchCallback;
    if (kind == ApiKind::graph_launch) {
      name = "cudaGraphLaunch", callback = kGraphLaunchCallback;
    }
    if (kind == ApiKind::copy) {
      name = "cudaMemcpyAsync", callback = kCopyCallback;
    }
    if (kind == ApiKind::synchronize) {
      name = "cudaStreamSynchronize", callback = kSynchronizeCallback;
    }
    events_.api_calls.push_back({.start_ns = start_ns,
                                 .end_ns = end_ns,
                                 .process = kSyntheticProcess,
                                 .thread = kSyntheticThread,
                                 .correlation = correlation,
                                 .callback_id = callback,
                                 .name = events_.strings.id(name),
                                 .kind = kind});
  }

  void add_operation(DeviceOperation operation, std::int64_t start_ns, std::uint32_t correlation) {
    operation.start_ns = start_ns;
    operation.process = kSyntheticProcess;
    operation.context = 1;
    operation.stream = kStream;
    operation.correlation = correlation;
    operation.grid = {64, 1, 1};
    operation.block = {256, 1, 1};
    events_.operations.push_back(operation);
  }

  void add_overhead(OverheadKind kind, std::int64_t start_ns, std::int64_t end_ns) {
    events_.overheads.push_back({.start_ns = start_ns, .end_ns = end_ns, .thread = kSyntheticThread, .kind = kind});
  }

  GapCause next_cause() {
    if (shape_.causes.empty()) {
      return kDrawnCauses[static_cast<std::size_t>(clock_.draw(0, kDrawnCauses.size() - 1))];
    }
    return shape_.causes[cause_++ % shape_.causes.size()];
  }

  /// Lets the host work until the launch, and ends the last operation, so that the gap between has the cause. Returns
  /// when the call begins.
  std::int64_t prepare(GapCause cause, std::int64_t call_ns) {
    const std::int64_t earliest_ns = last().start_ns + 500;
    switch (cause) {
      case GapCause::sync:
      case GapCause::host_after_sync: {
        const std::int64_t returned_ns = synchronize();
        clock_.pass(200, 3000);
        gap(GapCause::sync, returned_ns - last().end_ns);
        gap(GapCause::host_after_sync, clock_.now_ns - returned_ns);
        return clock_.now_ns;
      }
      case GapCause::dispatch:
        end_last(earliest_ns + clock_.draw(0, 4000));
        clock_.now_ns = std::max(clock_.now_ns, last().end_ns) + clock_.draw(500, 5000);
        gap(GapCause::dispatch, clock_.now_ns - last().end_ns);
        return clock_.now_ns;
      case GapCause::tool: return flush();
      case GapCause::launch_latency:
      case GapCause::unknown:
        clock_.now_ns = std::max(clock_.now_ns, earliest_ns) + clock_.draw(50, 300);
        end_last(clock_.now_ns + clock_.draw(0, call_ns - 1));
        return clock_.now_ns;
      case GapCause::dependency:
        clock_.pass(50, 300);
        end_last(std::max(earliest_ns, clock_.now_ns + call_ns + clock_.draw(0, 3000)));
        add_overhead(OverheadKind::command_buffer_full, clock_.now_ns, last().end_ns + 2000);
        return clock_.now_ns;
      case GapCause::edge: break;
    }
    throw std::invalid_argument("a synthetic gap cannot have the cause 'edge': edges are at the ends of steps");
  }

  /// The tool writes a buffer: from before the end of the last operation, or from after it.
  std::int64_t flush() {
    const bool from_before = clock_.draw(0, 1) == 1;
    const std::int64_t begin_ns = clock_.now_ns;
    if (from_before) {
      end_last(std::max(last().start_ns + 500, begin_ns + clock_.draw(100, 2000)));
      clock_.now_ns = last().end_ns + clock_.draw(500, 4000);
      add_overhead(OverheadKind::buffer_flush, begin_ns, clock_.now_ns);
      gap(GapCause::tool, clock_.now_ns - last().end_ns);
    } else {
      end_last(last().start_ns + 500 + clock_.draw(0, 2000));
      const std::int64_t flush_ns = std::max(begin_ns, last().end_ns) + clock_.draw(0, 500);
      clock_.now_ns = flush_ns + clock_.draw(500, 4000);
      add_overhead(OverheadKind::buffer_flush, flush_ns, clock_.now_ns);
      gap(GapCause::dispatch, flush_ns - last().end_ns);
      gap(GapCause::tool, clock_.now_ns - flush_ns);
    }
    const std::int64_t written_ns = clock_.now_ns;
    clock_.pass(0, 300);
    gap(GapCause::dispatch, clock_.now_ns - written_ns);
    return clock_.now_ns;
  }

  void launch(ApiKind kind, const DeviceOperation& operation) {
    const std::int64_t call_ns = clock_.draw(1500, 2500);
    // Within 4 us of the launch, so that a clock that is 5 us behind shows.
    std::int64_t start_ns = 0;
    const std::int64_t latency_ns = clock_.draw(200, 900);
    std::int64_t call_start_ns = 0;
    if (first_) {
      clock_.pass(20, 300);
      call_start_ns = clock_.now_ns;
      start_ns = call_start_ns + call_ns + latency_ns;
      gap(GapCause::edge, start_ns - step_start_ns_);
    } else {
      const GapCause cause = next_cause();
      call_start_ns = prepare(cause, call_ns);
      start_ns = start_after(cause, call_start_ns + call_ns, latency_ns);
      truth().host_margin_ns += std::max<std::int64_t>(0, last().end_ns - call_start_ns);
    }
    first_ = false;
    ++truth().launches;
    truth().launch_to_start_ns += start_ns - call_start_ns;
    clock_.now_ns = call_start_ns + call_ns;
    add_call(kind, call_start_ns, clock_.now_ns, ++correlation_);
    add_operation(operation, start_ns, correlation_);
  }

  /// When the operation starts, and the part of the gap that lies after the launch began.
  std::int64_t start_after(GapCause cause, std::int64_t call_end_ns, std::int64_t latency_ns) {
    if (cause == GapCause::dependency) {
      gap(GapCause::dependency, latency_ns);
      return last().end_ns + latency_ns;
    }
    const std::int64_t idle_from_ns = std::max(last().end_ns, clock_.now_ns);
    if (cause != GapCause::unknown) {
      gap(GapCause::launch_latency, call_end_ns + latency_ns - idle_from_ns);
      return call_end_ns + latency_ns;
    }
    const std::int64_t unexplained_ns = clock_.draw(500, 5000);
    gap(GapCause::launch_latency, call_end_ns + kLongestLaunchNs - idle_from_ns);
    gap(GapCause::unknown, unexplained_ns);
    return call_end_ns + kLongestLaunchNs + unexplained_ns;
  }

  const SyntheticShape& shape_;
  TraceEvents& events_;
  std::vector<SyntheticStep>& truth_;
  SyntheticClock clock_;
  std::int32_t step_ = 0;
  std::int64_t step_start_ns_ = 0;
  bool first_ = true;
  std::uint32_t correlation_ = 0;
  std::size_t cause_ = 0;
};

}  // namespace

void run_synthetic_device(const SyntheticShape& shape, SyntheticTrace& trace) { DeviceEngine(shape, trace).run(); }

}  // namespace decodelab
