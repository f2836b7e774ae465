// A made-up but plausible run for the tests of reports: times grow with batch and length, arms differ by known factors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "reports/statistics/batching_scope.h"
#include "reports/store/record.h"

namespace decodelab::testing {

struct SampleArm {
  std::string label;
  double factor = 1;     ///< Time of a step relative to the first arm's.
  double saw_tooth = 0;  ///< Extra share of time where the length is no multiple of 8, as with unpadded keys.
};

struct SampleOptions {
  std::vector<Phase> phases{Phase::prefill, Phase::decode};
  std::vector<std::int64_t> batches{1, 4, 16};
  std::vector<std::int64_t> lengths{64, 128, 256, 509, 1024, 2048, 4093};
  std::vector<SampleArm> arms{{"causal", 1.0, 0.06},
                              {"bigcode", 0.72, 0.05},
                              {"bigcode,+fused-layer-norm", 0.70, 0.05},
                              {"bigcode,+kv-pad:multiple=8", 0.71, 0.0}};
  std::vector<std::string> batching_scopes{"served", "first-token", "between-tokens"};
  std::int64_t launches = 5;
  std::int64_t blocks = 2;
  std::int64_t steps = 16;
  std::uint64_t seed = 1;
  double launch_noise = 0.008;
  double step_noise = 0.02;
  bool with_failures = true;  ///< The largest cell is out of memory for the first arm, and the last arm is unsupported
                              ///< at the smallest length.
};

/// Normal deviates that are the same with every standard library.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : generator_(seed) {}
  double operator()() {
    const double u = (static_cast<double>(generator_() >> 11) + 1.0) * 0x1p-53;
    const double v = static_cast<double>(generator_() >> 11) * 0x1p-53;
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  }

 private:
  std::mt19937_64 generator_;
};

/// The plan alone, as add_run() takes it: `cell_id` and `arm_id` are indices.
inline RunData planned_run(const SampleOptions& options = {}) {
  RunData data;
  data.run = {
      .id = 0,
      .uuid = "",
      .name = "sample",
      .command = "decodelab sweep -m synthetic:santacoder --arm causal --arm bigcode --batch 1,4,16 --length 64-4096x2",
      .plan_json = "{\"seed\":1}",
      .seed = 1,
      .launches = options.launches,
      .blocks_per_launch = options.blocks,
      .started_unix_ns = 1'760'000'000'000'000'000,
      .ended_unix_ns = 1'760'000'900'000'000'000,
      .quick = false,
      .build = {.commit = "0123456789ab",
                .compiler = "g++ 12.2.0",
                .build_type = "Release",
                .libtorch = "2.11.0",
                .cuda = ""},
      .machine = {.cpu = "AMD EPYC 9654 96-Core Processor",
                  .cores = 8,
                  .memory_bytes = 68'719'476'736,
                  .isa = "avx2 avx512f avx512bf16",
                  .os = "Linux 6.1.0",
                  .accelerator = ""},
      .model = {.name = "synthetic:santacoder",
                .family = "gpt_bigcode",
                .parameters = 1'124'886'528,
                .positions = 8192,
                .random_weights = true}};
  for (const Phase phase : options.phases) {
    for (const std::int64_t batch : options.batches) {
      for (const std::int64_t length : options.lengths) {
        for (const std::string& scope : phase == Phase::batching   ? options.batching_scopes
                                        : phase == Phase::generate ? std::vector<std::string>{"generate"}
                                                                   : std::vector<std::string>{"step"}) {
          data.cells.push_back({.id = 0,
                                .phase = phase,
                                .batch = batch,
                                .length = length,
                                .dtype = "bf16",
                                .device = "cpu",
                                .threads = 8,
                                .scope = scope,
                                .fill = "random",
                                .steps = options.steps});
        }
      }
    }
  }
  for (std::size_t a = 0; a < options.arms.size(); ++a) {
    data.arms.push_back({.id = 0, .label = options.arms[a].label, .baseline = a == 0});
  }
  for (std::size_t c = 0; c < data.cells.size(); ++c) {
    for (std::size_t a = 0; a < data.arms.size(); ++a) {
      CellArmRecord row;
      row.cell_id = static_cast<std::int64_t>(c);
      row.arm_id = static_cast<std::int64_t>(a);
      data.cell_arms.push_back(row);
    }
  }
  return data;
}

inline double expected_step_ns(const SampleArm& arm, const CellRecord& cell) {
  const double batch = static_cast<double>(cell.batch);
  const double length = static_cast<double>(cell.length);
  const double tooth = cell.length % 8 == 0 ? 0.0 : arm.saw_tooth;
  if (cell.phase == Phase::prefill) {
    return (9e6 + 5.5e4 * batch * length + 2.5 * batch * length * length) * arm.factor * (1 + tooth);
  }
  const double decode_ns = (3.1e7 + 1.1e6 * batch + 900 * batch * length) * arm.factor * (1 + tooth);
  if (cell.phase == Phase::batching) {
    const BatchingScope scope = batching_scope_from_string(cell.scope);
    // Beyond some rate a queue grows; below it, the last answer comes soon after the last request.
    const double load = scope.request_rate > 0 ? 1 + scope.request_rate * arm.factor / 4 : 4;
    switch (scope.sample) {
      case BatchingScope::Sample::served:
        return 40 * decode_ns + (scope.request_rate > 0 ? 2e11 / scope.request_rate : 0);
      case BatchingScope::Sample::first_token: return decode_ns * load * load;
      case BatchingScope::Sample::between_tokens: return decode_ns * (1 + load / 8);
      case BatchingScope::Sample::good:  // No more are good than come.
        return std::max(5 * decode_ns * load, scope.request_rate > 0 ? 1e9 / scope.request_rate : 0);
    }
  }
  return cell.phase == Phase::generate ? 64 * decode_ns : decode_ns;
}

/// A run of prefills whose arms are asked for prefix stores of several shares.
inline SampleOptions prefix_options() {
  return {.phases = {Phase::prefill},
          .batches = {1, 4},
          .lengths = {512},
          .arms = {{"native", 1.0, 0.0},
                   {"native@prefix=0", 1.02, 0.0},
                   {"native@prefix=0.5", 0.6, 0.0},
                   {"native@prefix=0.875", 0.2, 0.0},
                   {"native@prefix=0@samples=2", 1.1, 0.0},
                   {"native@prefix=0.875@samples=2", 0.4, 0.0}},
          .with_failures = false};
}

/// A run of decode steps whose arms tell several numbers of the most probable tokens.
inline SampleOptions top_tokens_options() {
  return {.phases = {Phase::decode},
          .batches = {64},
          .lengths = {16},
          .arms = {{"native", 1.0, 0.0},
                   {"native@top-tokens=5", 1.02, 0.0},
                   {"native@top-tokens=20", 1.05, 0.0},
                   {"causal@top-tokens=5", 1.4, 0.0},
                   {"causal@top-tokens=20", 1.6, 0.0}},
          .with_failures = false};
}

/// Options of a run of phase batching at several rates of requests.
inline SampleOptions batching_options() {
  SampleOptions options{.phases = {Phase::batching},
                        .batches = {8},
                        .lengths = {128},
                        .arms = {{"causal", 1.0, 0}, {"causal,+slot-batch", 0.7, 0}, {"native", 0.4, 0}},
                        .batching_scopes = {},
                        .launches = 3,
                        .blocks = 1,
                        .steps = 2,
                        .with_failures = false};
  for (const char* sample : {"served", "first-token", "between-tokens", "good-ttft200-tpot50"}) {
    for (const char* rate : {"", "-at-2", "-at-4", "-at-8"}) {
      options.batching_scopes.push_back(std::string(sample) + rate);
    }
  }
  return options;
}

/// The whole run with ids from 1, every block measured, statuses set.
inline RunData sample_run(const SampleOptions& options = {}) {
  RunData data = planned_run(options);
  Noise noise(options.seed);
  data.run.id = 1;
  data.run.uuid = "6e0f4c0e-7f4b-4b8e-9a53-0d9f4f9c2a11";
  for (std::size_t c = 0; c < data.cells.size(); ++c) {
    data.cells[c].id = static_cast<std::int64_t>(c) + 1;
  }
  for (std::size_t a = 0; a < data.arms.size(); ++a) {
    data.arms[a].id = static_cast<std::int64_t>(a) + 1;
  }
  const std::int64_t last_batch = options.batches.back();
  const std::int64_t last_length = options.lengths.back();
  for (CellArmRecord& row : data.cell_arms) {
    const CellRecord& cell = data.cells[static_cast<std::size_t>(row.cell_id)];
    const bool first_arm = row.arm_id == 0;
    const bool last_arm = row.arm_id + 1 == static_cast<std::int64_t>(data.arms.size());
    row.status = RowStatus::ok;
    row.engaged = true;
    row.peak_bytes =
        static_cast<std::int64_t>((first_arm ? 3.0 : 1.4) * static_cast<double>(cell.batch * cell.length) * 4096) +
        50'000'000;
    if (options.with_failures && last_arm && cell.length == options.lengths.front()) {
      row = {row.cell_id,
             row.arm_id,
             RowStatus::unsupported,
             "kv-pad:multiple=8 needs at least 128 positions, got 64; choose a longer --length.",
             {},
             {},
             0,
             {}};
    } else if (options.with_failures && first_arm && cell.batch == last_batch && cell.length == last_length &&
               cell.phase == Phase::prefill) {
      row = {row.cell_id, row.arm_id, RowStatus::oom, "needs 71.2 GiB, 60.1 GiB are available", {}, {}, 0, {}};
    }
    row.cell_id += 1;
    row.arm_id += 1;
  }
  for (std::int64_t launch = 0; launch < options.launches; ++launch) {
    std::vector<double> level(data.arms.size());
    for (double& value : level) {
      value = std::exp(options.launch_noise * noise());
    }
    for (std::int64_t block = 0; block < options.blocks; ++block) {
      for (std::size_t c = 0; c < data.cells.size(); ++c) {
        const CellRecord& cell = data.cells[c];
        BlockRecord record{
            .launch = launch,
            .block = block,
            .cell_id = cell.id,
            .started_unix_ns = data.run.started_unix_ns + (launch * options.blocks + block) * 60'000'000'000,
            .other_cpu_share = 0.004,
            .visits = {}};
        std::vector<std::size_t> order;
        for (std::size_t a = 0; a < data.arms.size(); ++a) {
          if (data.cell_arms[c * data.arms.size() + a].status == RowStatus::ok) {
            order.push_back(a);
          }
        }
        std::rotate(
            order.begin(),
            order.begin() + static_cast<std::ptrdiff_t>((launch + block) % static_cast<std::int64_t>(order.size())),
            order.end());
        const std::vector<std::size_t> mirror(order.rbegin(), order.rend());
        order.insert(order.end(), mirror.begin(), mirror.end());
        const double drift = std::exp(0.01 * noise());
        for (std::size_t p = 0; p < order.size(); ++p) {
          VisitRecord visit{.arm_id = static_cast<std::int64_t>(order[p]) + 1,
                            .position = static_cast<std::int64_t>(p),
                            .previous_arm_id = p == 0 ? 0 : static_cast<std::int64_t>(order[p - 1]) + 1,
                            .warmup_steps = 3,
                            .quiet = true,
                            .wall_ns = 0,
                            .samples_ns = {}};
          for (std::int64_t s = 0; s < cell.steps; ++s) {
            const double ns = expected_step_ns(options.arms[order[p]], cell) * level[order[p]] * drift *
                              std::exp(options.step_noise * noise());
            visit.samples_ns.push_back(std::llround(ns));
            visit.wall_ns += visit.samples_ns.back();
          }
          record.visits.push_back(std::move(visit));
        }
        data.blocks.push_back(std::move(record));
      }
    }
  }
  return data;
}

/// A run of phase batching with what its steps made.
inline RunData batching_run() {
  RunData data = sample_run(batching_options());
  for (CellArmRecord& row : data.cell_arms) {
    row.counters = {{"counted_steps", 1}, {"new_tokens", 1024}};
  }
  return data;
}

}  // namespace decodelab::testing
