// Traces for the tests of formats: one of every kind of row, and the synthetic engine's.
#pragma once

#include "profiles/trace/quality.h"
#include "profiles/trace/trace.h"
#include "tests/profiles/synthetic/synthetic.h"

namespace decodelab::testing {

/// A few rows of every table, with every column set somewhere: two processes, two devices, a graph, a copy, an open
/// span.
inline TraceEvents sample_events() {
  TraceEvents events;
  TraceSession& session = events.session;
  session.uuid = "6b1f";
  session.host = "machine";
  session.process = 4242;
  session.main_thread = 4243;
  session.window_start_ns = 1'000'000;
  session.window_end_ns = 1'090'000;
  session.unix_offset_ns = 1'700'000'000'000'000'000;
  session.tier = TraceTier::causes;
  session.model = "synthetic:tiny";
  session.arm = "causal";
  session.cell = "decode b=8 length=128 bf16 cuda";
  session.device = "cuda";
  session.devices = {{.index = 0,
                      .name = "A GPU",
                      .memory_bytes = 80,
                      .multiprocessors = 132,
                      .compute_major = 9,
                      .nominal_bytes_per_second = 3.35e12,
                      .measured_bytes_per_second = 3.1e12},
                     {.index = 1, .name = "Another GPU"}};
  session.versions = {{"cupti", "13.0"}};
  session.collectors = {{.name = "cupti", .on = true}, {.name = "nvml", .reason = "No driver."}};
  session.clocks = {{.before_ns = 1, .device_ns = 2, .after_ns = 3}};
  session.launches_counted = true;
  session.perturbation = {.ratio = 1.02, .low = 1.01, .high = 1.03, .pairs = 10};
  TraceStrings& text = events.strings;
  const auto span = [&](SpanKind kind, const char* name, std::int64_t start, std::int64_t end, Stage stage,
                        std::int32_t layer) {
    events.spans.push_back({.start_ns = start,
                            .end_ns = end,
                            .thread = 4243,
                            .step = 3,
                            .layer = layer,
                            .name = text.id(name),
                            .kind = kind,
                            .stage = stage,
                            .allocations = 2,
                            .allocated_bytes = 512,
                            .expected_bytes = 4096,
                            .expected_flops = 8192});
  };
  span(SpanKind::step, "step", 1'000'000, 1'060'000, Stage::other, kNoLayer);
  span(SpanKind::layer, "layer 1", 1'001'000, 1'050'000, Stage::other, 1);
  span(SpanKind::stage, "attention", 1'002'000, 1'040'000, Stage::attention, 1);
  span(SpanKind::operator_call, "aten::mm \"\\\xc3\xa9\n", 1'003'000, 1'020'000, Stage::attention, 1);
  span(SpanKind::other, "still open", 1'061'000, 0, Stage::host, kNoLayer);
  const auto call = [&](std::int64_t process, std::uint32_t correlation, const char* name, ApiKind kind,
                        std::int64_t start) {
    events.api_calls.push_back({.start_ns = start,
                                .end_ns = start + 2'000,
                                .process = process,
                                .thread = process + 1,
                                .correlation = correlation,
                                .callback_id = 211,
                                .name = text.id(name),
                                .kind = kind,
                                .driver = kind == ApiKind::set,
                                .result = kind == ApiKind::copy ? 700 : 0});
  };
  call(4242, 1, "cudaLaunchKernel", ApiKind::launch, 1'004'000);
  call(4242, 2, "cudaGraphLaunch", ApiKind::graph_launch, 1'008'000);
  call(4242, 3, "cudaMemcpyAsync", ApiKind::copy, 1'012'000);
  call(4242, 4, "cuMemsetD8Async", ApiKind::set, 1'016'000);
  call(5151, 1, "cudaLaunchKernel", ApiKind::launch, 1'004'500);
  const auto operation = [&](DeviceOperation row, std::int64_t start, std::int64_t end, const char* name) {
    row.start_ns = start;
    row.end_ns = end;
    row.name = text.id(name);
    if (row.process == 0) {
      row.process = 4242;
    }
    row.context = 1;
    events.operations.push_back(row);
  };
  operation({.stream = 7,
             .correlation = 1,
             .grid = {132, 2, 1},
             .block = {128, 1, 1},
             .registers = 255,
             .static_shared_bytes = 1024,
             .dynamic_shared_bytes = 49152},
            1'010'000, 1'020'000, "void gemm<128>(float const*)");
  // Overlaps the first: a lane of its own.
  operation({.stream = 7, .correlation = 2, .graph_id = 9, .graph_node_id = 91}, 1'015'000, 1'025'000, "softmax");
  operation({.stream = 7, .correlation = 2, .graph_id = 9, .graph_node_id = 92}, 1'025'000, 1'030'000, "gemv");
  operation({.stream = 8, .correlation = 3, .kind = DeviceOperationKind::copy, .bytes = 65536, .copy_kind = 2},
            1'030'000, 1'031'000, "Memcpy DtoH (Device -> Pinned)");
  operation({.stream = 7, .correlation = 4, .kind = DeviceOperationKind::set, .bytes = 64}, 1'032'000, 1'033'000,
            "Memset (Device)");
  operation({.process = 5151, .device = 1, .stream = 7, .correlation = 1}, 1'010'500, 1'011'500, "gemv");
  events.waits = {{.start_ns = 1'034'000,
                   .end_ns = 1'039'000,
                   .process = 4242,
                   .thread = 4243,
                   .stream = 7,
                   .event = 5,
                   .correlation = 5,
                   .kind = WaitKind::stream},
                  {.start_ns = 1'041'000,
                   .end_ns = 1'042'000,
                   .process = 4242,
                   .thread = 4243,
                   .correlation = 6,
                   .kind = WaitKind::context}};
  events.overheads = {
      {.start_ns = 1'062'000, .end_ns = 1'063'000, .thread = 4243, .kind = OverheadKind::buffer_flush},
      {.start_ns = 1'064'000, .end_ns = 1'064'000, .thread = 4243, .kind = OverheadKind::command_buffer_full}};
  events.counters = {{.time_ns = 1'000'000, .series = text.id("held_bytes"), .value = 0.1},
                     {.time_ns = 1'050'000, .series = text.id("held_bytes"), .value = 1e12},
                     {.time_ns = 1'050'000, .series = text.id("sm_clock_mhz"), .value = 1980}};
  events.steps = {
      {.index = 3,
       .start_ns = 1'000'000,
       .end_ns = 1'060'000,
       .batch = 8,
       .keys = 128,
       .launches = 3,
       .graph_launches = 1,
       .timer_ns = 60'100},
      {.index = 4, .start_ns = 1'060'000, .end_ns = 1'080'000, .excluded_reason = "cut by the end of the window"}};
  events.nodes = {{.graph_id = 9, .node_id = 91, .original_node_id = 11, .layer = 1, .stage = Stage::attention},
                  {.graph_id = 9, .node_id = 92, .layer = 1, .stage = Stage::mlp}};
  return events;
}

inline TraceQuality sample_quality() {
  return {.verdict = TraceVerdict::warn,
          .reason = "Two kernels overlap.",
          .checks = {{.id = "I5",
                      .title = "kernels of a stream",
                      .status = CheckStatus::warned,
                      .value = 1,
                      .evidence = "Two kernels overlap."}}};
}

/// A decode of the synthetic engine; without the grids that it gives to its copies too, which no format has a place
/// for.
inline Trace synthetic(const SyntheticShape& shape) {
  TraceEvents events = synthetic_trace(shape).events;
  for (DeviceOperation& row : events.operations) {
    if (row.kind != DeviceOperationKind::kernel) {
      row.grid = row.block = {};
    }
  }
  return seal(std::move(events));
}

}  // namespace decodelab::testing
