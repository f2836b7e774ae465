// Reads runs and what belongs to them.
#include "reports/store/read_rows.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "reports/store/statement.h"

namespace decodelab {
namespace {

constexpr const char* kRunColumns =
    "SELECT runs.id, uuid, runs.name, command, plan_json, seed, launches, blocks_per_launch, started_unix_ns, "
    "ended_unix_ns, quick, "
    "git_commit, compiler, build_type, libtorch, cuda, cpu, cores, memory_bytes, isa, os, accelerator, "
    "models.name, family, parameters, positions, random_weights FROM runs JOIN builds ON builds.id = build_id "
    "JOIN machines ON machines.id = machine_id JOIN models ON models.id = model_id ";

std::vector<std::int64_t> decode(const SQLite::Column& column) {
  const auto* bytes = static_cast<const unsigned char*>(column.getBlob());
  std::vector<std::int64_t> samples(static_cast<std::size_t>(column.getBytes()) / 8);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    std::uint64_t value = 0;
    for (std::size_t b = 0; b < 8; ++b) {
      value |= static_cast<std::uint64_t>(bytes[i * 8 + b]) << (8 * b);
    }
    samples[i] = static_cast<std::int64_t>(value);
  }
  return samples;
}

RunRecord run_of(const SQLite::Statement& row) {
  int i = 0;
  const auto text = [&] { return row.getColumn(i++).getString(); };
  const auto number = [&] { return row.getColumn(i++).getInt64(); };
  RunRecord run;
  run.id = number();
  run.uuid = text();
  run.name = text();
  run.command = text();
  run.plan_json = text();
  run.seed = number();
  run.launches = number();
  run.blocks_per_launch = number();
  run.started_unix_ns = number();
  run.ended_unix_ns = number();
  run.quick = number() != 0;
  run.build = {.commit = text(), .compiler = text(), .build_type = text(), .libtorch = text(), .cuda = text()};
  run.machine = {
      .cpu = text(), .cores = number(), .memory_bytes = number(), .isa = text(), .os = text(), .accelerator = text()};
  run.model = {
      .name = text(), .family = text(), .parameters = number(), .positions = number(), .random_weights = number() != 0};
  return run;
}

}  // namespace

std::vector<RunRecord> read_runs(SQLite::Database& database) {
  std::vector<RunRecord> runs;
  SQLite::Statement row(database, std::string(kRunColumns) + "ORDER BY started_unix_ns, runs.id");
  while (row.executeStep()) {
    runs.push_back(run_of(row));
  }
  return runs;
}

std::optional<RunRecord> read_run(SQLite::Database& database, std::int64_t run_id) {
  auto row = prepared(database, std::string(kRunColumns) + "WHERE runs.id = ?", run_id);
  return row.executeStep() ? std::optional(run_of(row)) : std::nullopt;
}

std::vector<CellRecord> read_cells(SQLite::Database& database, std::int64_t run_id) {
  std::vector<CellRecord> cells;
  auto row = prepared(database,
                      "SELECT id, phase, batch, length, dtype, device, threads, scope, fill, steps, turn_steps FROM "
                      "cells WHERE run_id = ? ORDER BY id",
                      run_id);
  while (row.executeStep()) {
    cells.push_back({.id = row.getColumn(0).getInt64(),
                     .phase = phase_from_string(row.getColumn(1).getString()),
                     .batch = row.getColumn(2).getInt64(),
                     .length = row.getColumn(3).getInt64(),
                     .dtype = row.getColumn(4).getString(),
                     .device = row.getColumn(5).getString(),
                     .threads = row.getColumn(6).getInt64(),
                     .scope = row.getColumn(7).getString(),
                     .fill = row.getColumn(8).getString(),
                     .steps = row.getColumn(9).getInt64(),
                     .slice_steps = row.getColumn(10).getInt64()});
  }
  return cells;
}

std::vector<ArmRecord> read_arms(SQLite::Database& database, std::int64_t run_id) {
  std::vector<ArmRecord> arms;
  auto row = prepared(
      database, "SELECT id, label, baseline, command, engine, version, settings FROM arms WHERE run_id = ? ORDER BY id",
      run_id);
  while (row.executeStep()) {
    arms.push_back({.id = row.getColumn(0).getInt64(),
                    .label = row.getColumn(1).getString(),
                    .baseline = row.getColumn(2).getInt() != 0,
                    .command = row.getColumn(3).getString(),
                    .engine = row.getColumn(4).getString(),
                    .version = row.getColumn(5).getString(),
                    .settings = row.getColumn(6).getString()});
  }
  return arms;
}

namespace {

std::map<std::pair<std::int64_t, std::int64_t>, Counters> read_counters(SQLite::Database& database,
                                                                        std::int64_t run_id) {
  std::map<std::pair<std::int64_t, std::int64_t>, Counters> counters;
  auto row = prepared(
      database, "SELECT cell_id, arm_id, name, value FROM counters JOIN cells ON cells.id = cell_id WHERE run_id = ?",
      run_id);
  while (row.executeStep()) {
    counters[{row.getColumn(0).getInt64(), row.getColumn(1).getInt64()}][row.getColumn(2).getString()] =
        row.getColumn(3).getInt64();
  }
  return counters;
}

}  // namespace

std::vector<CellArmRecord> read_cell_arms(SQLite::Database& database, std::int64_t run_id) {
  std::vector<CellArmRecord> rows;
  auto counters = read_counters(database, run_id);
  auto row = prepared(database,
                      "SELECT cell_id, arm_id, status, reason, engaged, peak_bytes, ties, flags, logit_error, "
                      "kl_divergence, top_1_agreement FROM cell_arms JOIN cells ON cells.id = cell_id WHERE run_id = ? "
                      "ORDER BY cell_id, arm_id",
                      run_id);
  while (row.executeStep()) {
    CellArmRecord record{.cell_id = row.getColumn(0).getInt64(),
                         .arm_id = row.getColumn(1).getInt64(),
                         .status = row_status_from_string(row.getColumn(2).getString()),
                         .reason = row.getColumn(3).getString(),
                         .engaged = std::nullopt,
                         .peak_bytes = std::nullopt,
                         .ties = row.getColumn(6).getInt64(),
                         .flags = parse_json(row.getColumn(7).getString()).get<std::vector<std::string>>(),
                         .counters = {}};
    if (const auto found = counters.find({record.cell_id, record.arm_id}); found != counters.end()) {
      record.counters = std::move(found->second);
    }
    if (!row.getColumn(4).isNull()) {
      record.engaged = row.getColumn(4).getInt() != 0;
    }
    if (!row.getColumn(5).isNull()) {
      record.peak_bytes = row.getColumn(5).getInt64();
    }
    if (!row.getColumn(8).isNull()) {
      record.agreement = {.logit_error = row.getColumn(8).getDouble(),
                          .kl_divergence = row.getColumn(9).getDouble(),
                          .top_1_agreement = row.getColumn(10).getDouble()};
    }
    rows.push_back(std::move(record));
  }
  return rows;
}

namespace {

std::vector<BlockRecord> blocks_where(SQLite::Database& database, const std::string& column, std::int64_t value) {
  std::vector<BlockRecord> blocks;
  std::int64_t current = 0;
  auto row = prepared(
      database,
      "SELECT blocks.id, launch, block, cell_id, started_unix_ns, other_cpu_share, arm_id, position, previous_arm_id, "
      "warmup_steps, quiet, wall_ns, samples_ns FROM blocks LEFT JOIN visits ON block_id = blocks.id "
      "WHERE " +
          column + " = ? ORDER BY blocks.id, position",
      value);
  while (row.executeStep()) {
    if (const std::int64_t id = row.getColumn(0).getInt64(); id != current) {
      current = id;
      blocks.push_back({.launch = row.getColumn(1).getInt64(),
                        .block = row.getColumn(2).getInt64(),
                        .cell_id = row.getColumn(3).getInt64(),
                        .started_unix_ns = row.getColumn(4).getInt64(),
                        .other_cpu_share = row.getColumn(5).getDouble(),
                        .visits = {}});
    }
    if (row.getColumn(6).isNull()) {
      continue;
    }
    blocks.back().visits.push_back({.arm_id = row.getColumn(6).getInt64(),
                                    .position = row.getColumn(7).getInt64(),
                                    .previous_arm_id = row.getColumn(8).getInt64(),  // NULL reads as 0
                                    .warmup_steps = row.getColumn(9).getInt64(),
                                    .quiet = row.getColumn(10).getInt() != 0,
                                    .wall_ns = row.getColumn(11).getInt64(),
                                    .samples_ns = decode(row.getColumn(12))});
  }
  return blocks;
}

}  // namespace

std::vector<BlockRecord> read_blocks(SQLite::Database& database, std::int64_t run_id) {
  return blocks_where(database, "blocks.run_id", run_id);
}

std::vector<TraceRecord> read_traces(SQLite::Database& database, std::int64_t run_id) {
  std::vector<TraceRecord> traces;
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> index;
  auto row =
      prepared(database,
               "SELECT cell_id, arm_id, file, command, verdict, reason, tier, traces.steps, steps_ns, residual_ns, "
               "perturbation, perturbation_low, perturbation_high FROM traces JOIN cells ON cells.id = cell_id "
               "WHERE run_id = ? ORDER BY cell_id, arm_id",
               run_id);
  while (row.executeStep()) {
    traces.push_back({.cell_id = row.getColumn(0).getInt64(),
                      .arm_id = row.getColumn(1).getInt64(),
                      .file = row.getColumn(2).getString(),
                      .command = row.getColumn(3).getString(),
                      .verdict = row.getColumn(4).getString(),
                      .reason = row.getColumn(5).getString(),
                      .tier = row.getColumn(6).getInt64(),
                      .steps = row.getColumn(7).getInt64(),
                      .steps_ns = row.getColumn(8).getInt64(),
                      .residual_ns = row.getColumn(9).getInt64(),
                      .perturbation = row.getColumn(10).getDouble(),
                      .perturbation_low = row.getColumn(11).getDouble(),
                      .perturbation_high = row.getColumn(12).getDouble(),
                      .shares = {}});
    index[{traces.back().cell_id, traces.back().arm_id}] = traces.size() - 1;
  }
  auto share = prepared(database,
                        "SELECT cell_id, arm_id, kind, name, host_ns, device_ns, operators, kernels, allocations, "
                        "allocated_bytes FROM trace_shares JOIN cells ON cells.id = cell_id WHERE run_id = ? "
                        "ORDER BY cell_id, arm_id, place",
                        run_id);
  while (share.executeStep()) {
    TraceRecord& trace = traces[index.at({share.getColumn(0).getInt64(), share.getColumn(1).getInt64()})];
    trace.shares.push_back({.kind = share.getColumn(2).getString(),
                            .name = share.getColumn(3).getString(),
                            .host_ns = share.getColumn(4).getInt64(),
                            .device_ns = share.getColumn(5).getInt64(),
                            .operators = share.getColumn(6).getInt64(),
                            .kernels = share.getColumn(7).getInt64(),
                            .allocations = share.getColumn(8).getInt64(),
                            .allocated_bytes = share.getColumn(9).getInt64()});
  }
  return traces;
}

std::vector<TimeSpentRecord> read_times_spent(SQLite::Database& database, std::int64_t run_id) {
  std::vector<TimeSpentRecord> times;
  auto row = prepared(database, "SELECT shard, launch, arm_id, activity, ns FROM times_spent WHERE run_id = ?", run_id);
  while (row.executeStep()) {
    times.push_back({.shard = row.getColumn(0).getString(),
                     .launch = row.getColumn(1).getInt64(),
                     .arm_id = row.getColumn(2).getInt64(),
                     .activity = activity_from_string(row.getColumn(3).getString()),
                     .ns = row.getColumn(4).getInt64()});
  }
  std::ranges::stable_sort(times, {}, [](const TimeSpentRecord& time) {
    return std::tuple(time.launch, time.arm_id, time.activity, time.shard);
  });
  return times;
}

std::vector<CellProofRecord> read_proofs(SQLite::Database& database, std::int64_t run_id) {
  std::vector<CellProofRecord> proofs;
  auto row = prepared(database,
                      "SELECT cell_id, cell_proofs.batch, cell_proofs.length, first, tokens, request FROM cell_proofs "
                      "JOIN cells ON cells.id = cell_id WHERE run_id = ? ORDER BY cell_id, request",
                      run_id);
  while (row.executeStep()) {
    CellProofRecord proof{.cell_id = row.getColumn(0).getInt64(),
                          .request = row.getColumn(5).getString(),
                          .batch = row.getColumn(1).getInt64(),
                          .length = row.getColumn(2).getInt64(),
                          .first = parse_json(row.getColumn(3).getString()),
                          .tokens = parse_json(row.getColumn(4).getString())};
    auto arm = prepared(database, "SELECT arm_id, chosen FROM arm_proofs WHERE cell_id = ? AND request = ?",
                        proof.cell_id, proof.request);
    while (arm.executeStep()) {
      proof.chosen[arm.getColumn(0).getInt64()] = arm.getColumn(1).getString();
    }
    proofs.push_back(std::move(proof));
  }
  return proofs;
}

std::vector<CompletionRecord> read_completions(SQLite::Database& database, std::int64_t run_id) {
  std::vector<CompletionRecord> completions;
  auto row = prepared(database,
                      "SELECT arm_id, prompt, prompt_text, class, prompt_tokens, token_ids, text FROM completions JOIN "
                      "arms ON arms.id = arm_id WHERE run_id = ? ORDER BY prompt, arm_id",
                      run_id);
  while (row.executeStep()) {
    completions.push_back({.arm_id = row.getColumn(0).getInt64(),
                           .prompt = row.getColumn(1).getInt64(),
                           .prompt_text = row.getColumn(2).getString(),
                           .prompt_class = row.getColumn(3).getString(),
                           .prompt_tokens = row.getColumn(4).getInt64(),
                           .token_ids = parse_json(row.getColumn(5).getString()),
                           .text = row.getColumn(6).getString()});
  }
  return completions;
}

std::vector<QualityRecord> read_qualities(SQLite::Database& database, std::int64_t run_id) {
  std::vector<QualityRecord> qualities;
  auto row = prepared(database,
                      "SELECT qualities.* FROM qualities JOIN arms ON arms.id = arm_id WHERE run_id = ? "
                      "ORDER BY arm_id",
                      run_id);
  while (row.executeStep()) {
    qualities.push_back({.arm_id = row.getColumn(0).getInt64(),
                         .tokens = row.getColumn(1).getInt64(),
                         .log_perplexity = row.getColumn(2).getDouble(),
                         .log_perplexity_error = row.getColumn(3).getDouble(),
                         .log_ratio = row.getColumn(4).getDouble(),
                         .log_ratio_error = row.getColumn(5).getDouble(),
                         .kl_divergence = row.getColumn(6).getDouble(),
                         .kl_divergence_error = row.getColumn(7).getDouble(),
                         .kl_divergence_999 = row.getColumn(8).getDouble(),
                         .top_1_agreement = row.getColumn(9).getDouble(),
                         .top_1_agreement_error = row.getColumn(10).getDouble(),
                         .rms_probability = row.getColumn(11).getDouble(),
                         .reason = row.getColumn(12).getString()});
  }
  return qualities;
}

RunData read_plan(SQLite::Database& database, RunRecord run) {
  const std::int64_t id = run.id;
  return {.run = std::move(run),
          .cells = read_cells(database, id),
          .arms = read_arms(database, id),
          .cell_arms = read_cell_arms(database, id),
          .blocks = {},
          .traces = read_traces(database, id),
          .times_spent = read_times_spent(database, id),
          .proofs = read_proofs(database, id),
          .completions = read_completions(database, id),
          .qualities = read_qualities(database, id)};
}

std::optional<BlockRecord> read_block(SQLite::Database& database, std::int64_t run_id, std::int64_t launch,
                                      std::int64_t block, std::int64_t cell_id) {
  auto row = prepared(database, "SELECT id FROM blocks WHERE run_id = ? AND launch = ? AND block = ? AND cell_id = ?",
                      run_id, launch, block, cell_id);
  if (!row.executeStep()) {
    return std::nullopt;
  }
  return blocks_where(database, "blocks.id", row.getColumn(0).getInt64()).front();
}

}  // namespace decodelab
