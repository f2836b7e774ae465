// A synthetic decode on a CPU: stages with operators, some of which call others.
#include <fmt/format.h>

#include "tests/profiles/synthetic/synthetic_engine.h"

namespace decodelab {
namespace {

constexpr int kMostOperators = 3;
constexpr std::int64_t kAllocatedBytes = 4096;

class CpuEngine {
 public:
  CpuEngine(const SyntheticShape& shape, SyntheticTrace& trace)
      : shape_(shape), events_(trace.events), truth_(trace.truth), clock_(shape) {}

  void run() {
    for (int i = 0; i < shape_.steps; ++i) {
      step(i);
      clock_.pass(200, 900);
    }
  }

 private:
  void step(int index) {
    step_ = index;
    truth_.emplace_back();
    const std::size_t span = begin_span(events_, clock_, {.step = index, .kind = SpanKind::step}, "step");
    outside_of_stages();
    stage(Stage::embed, kNoLayer, 1);
    for (int layer = 0; layer < shape_.layers; ++layer) {
      run_layer(layer);
    }
    stage(Stage::head, kNoLayer, 1);
    stage(Stage::choice, kNoLayer, 2);
    outside_of_stages();
    const std::int64_t ns = end_span(events_, clock_, span);
    truth_.back().span_ns = ns;
    events_.steps.push_back({.index = index,
                             .start_ns = events_.spans[span].start_ns,
                             .end_ns = clock_.now_ns,
                             .batch = 8,
                             .keys = 128 + index,
                             .timer_ns = ns + clock_.draw(0, ns / 1000)});
  }

  void run_layer(int layer) {
    const std::size_t span =
        begin_span(events_, clock_, {.step = step_, .layer = layer, .kind = SpanKind::layer}, "layer");
    for (int i = 0; i < shape_.kernels_per_layer; ++i) {
      outside_of_stages();
      const auto which = static_cast<std::size_t>(i) % kSyntheticStages.size();
      stage(kSyntheticStages[which], layer, 1 + i % kMostOperators);
    }
    end_span(events_, clock_, span);
  }

  void outside_of_stages() {
    const std::int64_t before_ns = clock_.now_ns;
    clock_.pass(0, 80);
    truth_.back().residual_ns += clock_.now_ns - before_ns;
  }

  void stage(Stage stage, int layer, int operators) {
    const char* name = kStageNames[static_cast<std::size_t>(stage)];
    const HostSpan what{.step = step_, .layer = layer, .kind = SpanKind::stage, .stage = stage, .expected_bytes = 100};
    const std::size_t span = begin_span(events_, clock_, what, name);
    for (int i = 0; i < operators; ++i) {
      clock_.pass(0, 100);
      run_operator(fmt::format("aten::{}_{}", name, i), i == 0);
    }
    clock_.pass(0, 100);
    truth_.back().host_stage_ns[static_cast<std::size_t>(stage)] += end_span(events_, clock_, span);
  }

  /// Steps and stages of operators are left to seal().
  void run_operator(const std::string& name, bool calls_another) {
    const HostSpan what{.kind = SpanKind::operator_call, .allocations = 1, .allocated_bytes = kAllocatedBytes};
    const std::size_t span = begin_span(events_, clock_, what, name);
    ++truth_.back().operators;
    clock_.pass(1000, 20'000);
    if (calls_another) {
      run_operator("aten::empty", false);
    }
    clock_.pass(0, 500);
    end_span(events_, clock_, span);
  }

  const SyntheticShape& shape_;
  TraceEvents& events_;
  std::vector<SyntheticStep>& truth_;
  SyntheticClock clock_;
  std::int32_t step_ = 0;
};

}  // namespace

void run_synthetic_cpu(const SyntheticShape& shape, SyntheticTrace& trace) { CpuEngine(shape, trace).run(); }

}  // namespace decodelab
