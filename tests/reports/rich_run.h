// A made-up run in which every figure has something to draw: rooflines, an ablation, counters, traces, failures, void
// blocks.
#pragma once

#include "tests/reports/sample_run.h"

namespace decodelab::testing {

/// Presets, single switches and a pair of them on `bigcode`, and both rooflines.
inline SampleOptions rich_options() {
  SampleOptions options;
  options.batches = {1, 4, 16};
  options.lengths = {64, 257, 1024, 4093};
  options.arms = {{"causal", 1.0, 0.06},
                  {"bigcode", 0.72, 0.05},
                  {"bigcode,+fused-layer-norm", 0.70, 0.05},
                  {"bigcode,+padded-keys:multiple=8", 0.71, 0.0},
                  {"bigcode,+fused-layer-norm,+padded-keys:multiple=8", 0.66, 0.0},
                  {"native", 0.45, 0.0},
                  {kRooflineRead, 0.21, 0.0},
                  {kRooflineGemm, 0.08, 0.0}};
  options.launches = 10;
  options.blocks = 1;
  options.steps = 8;
  return options;
}

/// The same with little of each.
inline SampleOptions small_rich_options() {
  SampleOptions options = rich_options();
  options.batches = {4, 16};
  options.lengths = {64, 4093};
  options.launches = 3;
  return options;
}

inline void add_counters(RunData& data) {
  for (CellArmRecord& row : data.cell_arms) {
    const CellRecord& cell = data.cells[static_cast<std::size_t>(row.cell_id - 1)];
    const std::int64_t arm = row.arm_id;
    if (row.status != RowStatus::ok || data.arms[static_cast<std::size_t>(arm - 1)].roofline()) {
      continue;
    }
    const std::int64_t tokens = cell.phase == Phase::prefill ? cell.length : cell.length + 1;
    row.counters = {
        {"counted_steps", 8},
        {"operators", 8 * (1500 - 180 * arm)},
        {"allocations", 8 * (arm == 6 ? 0 : 600 - 60 * arm)},
        {"allocated_bytes", 8 * (arm == 6 ? 0 : 9'000'000 / arm)},
        {"modelled_weight_bytes", std::int64_t{8} * 2'249'773'056},
        {"modelled_kv_bytes", 8 * cell.batch * tokens * 24 * 2 * 2 * 128},
        {"modelled_flops", 8 * cell.batch * (cell.phase == Phase::prefill ? cell.length : 1) * 2'249'773'056}};
    if (row.counters["allocations"] == 0) {
      row.counters.erase("allocations");
    }
    if (row.counters["allocated_bytes"] == 0) {
      row.counters.erase("allocated_bytes");
    }
  }
}

/// Accounts of `arm_id` in the largest decode cell; their times are those of the sample, a little longer.
inline TraceRecord sample_trace(const RunData& data, const CellRecord& cell, std::int64_t arm_id, double step_ns) {
  constexpr std::pair<const char*, double> kShares[] = {{"embed", 0.01},     {"norm", 0.06},       {"qkv", 0.14},
                                                        {"attention", 0.30}, {"projection", 0.08}, {"mlp", 0.29},
                                                        {"head", 0.09},      {"choice", 0.03}};
  const std::int64_t steps = 16;
  TraceRecord trace{.cell_id = cell.id,
                    .arm_id = arm_id,
                    .file = "traces/decode-" + std::to_string(arm_id) + ".json.gz",
                    .command = "decodelab trace --run " + std::to_string(data.run.id) + " --arm " +
                               data.arms[static_cast<std::size_t>(arm_id - 1)].label,
                    .verdict = arm_id == 2 ? "warn" : "ok",
                    .reason = arm_id == 2 ? "traced steps take 6 % longer than untraced ones" : "",
                    .tier = 1,
                    .steps = steps,
                    .steps_ns = 0,
                    .residual_ns = 0,
                    .perturbation = 1.021,
                    .perturbation_low = 1.012,
                    .perturbation_high = 1.030,
                    .shares = {}};
  double weight = 1;
  for (const auto& [name, share] : kShares) {
    weight = weight > 1 ? 0.9 : 1.1;
    const auto host_ns =
        std::llround(share * weight * step_ns * 1.021 * static_cast<double>(steps) * (arm_id % 2 == 0 ? 1.0 : weight));
    trace.shares.push_back({.kind = "stage",
                            .name = name,
                            .host_ns = host_ns,
                            .device_ns = 0,
                            .operators = 24 * steps,
                            .kernels = 0,
                            .allocations = 12 * steps,
                            .allocated_bytes = 4096 * steps});
    trace.steps_ns += host_ns;
  }
  trace.residual_ns = trace.steps_ns / 25;
  trace.steps_ns += trace.residual_ns;
  trace.shares.push_back({.kind = "gap",
                          .name = "sync",
                          .host_ns = 0,
                          .device_ns = 12'000,
                          .operators = 0,
                          .kernels = 0,
                          .allocations = 0,
                          .allocated_bytes = 0});
  return trace;
}

inline RunData rich_run(const SampleOptions& options = rich_options()) {
  RunData data = sample_run(options);
  add_counters(data);
  // The two largest batches of the baseline run out of memory at the longest prompts.
  for (CellArmRecord& row : data.cell_arms) {
    const CellRecord& cell = data.cells[static_cast<std::size_t>(row.cell_id - 1)];
    if (row.arm_id != 1 || cell.phase != Phase::prefill || cell.batch * cell.length < 16'000) {
      continue;
    }
    row.status = RowStatus::oom;
    row.reason = "needs 71.2 GiB, 60.1 GiB are available";
    row.peak_bytes.reset();
    row.counters.clear();
    for (BlockRecord& block : data.blocks) {
      if (block.cell_id == cell.id) {
        std::erase_if(block.visits, [](const VisitRecord& visit) { return visit.arm_id == 1; });
      }
    }
  }
  for (BlockRecord& block : data.blocks) {
    if (block.launch == 3 && block.cell_id % 5 == 0) {
      block.other_cpu_share = 0.09;
    }
  }
  for (const CellRecord& cell : data.cells) {
    if (cell.phase != Phase::decode || cell.batch != options.batches.back() || cell.length != options.lengths.back()) {
      continue;
    }
    for (const std::int64_t arm : {1, 2, 6}) {
      data.traces.push_back(
          sample_trace(data, cell, arm, expected_step_ns(options.arms[static_cast<std::size_t>(arm - 1)], cell)));
    }
  }
  return data;
}

}  // namespace decodelab::testing
