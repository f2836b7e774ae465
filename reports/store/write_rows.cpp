// Inserts and updates of the store's rows.
#include "reports/store/write_rows.h"

#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/store/statement.h"

namespace decodelab {
namespace {

// The store's form of samples: little-endian int64, read back by read_blocks().
std::string encode(const std::vector<std::int64_t>& samples) {
  std::string bytes(samples.size() * 8, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(static_cast<std::uint64_t>(samples[i / 8]) >> (8 * (i % 8)));
  }
  return bytes;
}

std::string random_uuid() {
  std::random_device device;
  std::uniform_int_distribution<std::uint64_t> word;
  const std::uint64_t high = (word(device) & ~0xf000ULL) | 0x4000ULL;       // version 4
  const std::uint64_t low = (word(device) & ~(3ULL << 62)) | (2ULL << 62);  // RFC 4122 variant
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff, high & 0xffff, low >> 48,
                     low & 0xffffffffffffULL);
}

std::optional<double> part_of(const std::optional<Agreement>& agreement, double Agreement::* part) {
  return agreement ? std::optional((*agreement).*part) : std::nullopt;
}

void insert_counters(SQLite::Database& database, const CellArmRecord& row) {
  for (const auto& [name, value] : row.counters) {
    execute(database, "INSERT INTO counters (cell_id, arm_id, name, value) VALUES (?, ?, ?, ?)", row.cell_id,
            row.arm_id, name, value);
  }
}

}  // namespace

void insert_cell_arm(SQLite::Database& database, const CellArmRecord& row) {
  execute(database,
          "INSERT INTO cell_arms (cell_id, arm_id, status, reason, engaged, peak_bytes, ties, flags, logit_error, "
          "kl_divergence, top_1_agreement) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
          row.cell_id, row.arm_id, std::string(to_string(row.status)), row.reason, row.engaged, row.peak_bytes,
          row.ties, nlohmann::json(row.flags).dump(), part_of(row.agreement, &Agreement::logit_error),
          part_of(row.agreement, &Agreement::kl_divergence), part_of(row.agreement, &Agreement::top_1_agreement));
  insert_counters(database, row);
}

void insert_run(SQLite::Database& database, RunRecord& run) {
  const auto& [build, machine, model] = std::tie(run.build, run.machine, run.model);
  const std::int64_t build_id = shared_row(database, "builds", "git_commit, compiler, build_type, libtorch, cuda",
                                           build.commit, build.compiler, build.build_type, build.libtorch, build.cuda);
  const std::int64_t machine_id =
      shared_row(database, "machines", "cpu, cores, memory_bytes, isa, os, accelerator", machine.cpu, machine.cores,
                 machine.memory_bytes, machine.isa, machine.os, machine.accelerator);
  const std::int64_t model_id =
      shared_row(database, "models", "name, family, parameters, positions, random_weights", model.name, model.family,
                 model.parameters, model.positions, model.random_weights);
  if (run.uuid.empty()) {
    run.uuid = random_uuid();
  }
  run.id = execute(database,
                   "INSERT INTO runs (uuid, name, command, plan_json, seed, launches, blocks_per_launch, "
                   "started_unix_ns, ended_unix_ns, quick, "
                   "build_id, machine_id, model_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                   run.uuid, run.name, run.command, run.plan_json, run.seed, run.launches, run.blocks_per_launch,
                   run.started_unix_ns, run.ended_unix_ns, run.quick, build_id, machine_id, model_id);
}

std::int64_t insert_cell(SQLite::Database& database, std::int64_t run_id, const CellRecord& cell) {
  return execute(database,
                 "INSERT INTO cells (run_id, phase, batch, length, dtype, device, threads, scope, fill, steps, "
                 "turn_steps) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                 run_id, to_string(cell.phase), cell.batch, cell.length, cell.dtype, cell.device, cell.threads,
                 cell.scope, cell.fill, cell.steps, cell.slice_steps);
}

std::int64_t insert_arm(SQLite::Database& database, std::int64_t run_id, const ArmRecord& arm) {
  return execute(
      database,
      "INSERT INTO arms (run_id, label, baseline, command, engine, version, settings) VALUES (?, ?, ?, ?, ?, ?, ?)",
      run_id, arm.label, arm.baseline, arm.command, arm.engine, arm.version, arm.settings);
}

bool update_cell_arm(SQLite::Database& database, const CellArmRecord& row) {
  const int changed =
      prepared(database,
               "UPDATE cell_arms SET status = ?, reason = ?, engaged = ?, peak_bytes = ?, ties = ?, flags = ?, "
               "logit_error = ?, kl_divergence = ?, top_1_agreement = ? WHERE cell_id = ? AND arm_id = ?",
               std::string(to_string(row.status)), row.reason, row.engaged, row.peak_bytes, row.ties,
               nlohmann::json(row.flags).dump(), part_of(row.agreement, &Agreement::logit_error),
               part_of(row.agreement, &Agreement::kl_divergence), part_of(row.agreement, &Agreement::top_1_agreement),
               row.cell_id, row.arm_id)
          .exec();
  if (changed == 0) {
    return false;
  }
  prepared(database, "DELETE FROM counters WHERE cell_id = ? AND arm_id = ?", row.cell_id, row.arm_id).exec();
  insert_counters(database, row);
  return true;
}

void insert_block(SQLite::Database& database, std::int64_t run_id, const BlockRecord& block) {
  const std::int64_t block_id =
      execute(database,
              "INSERT INTO blocks (run_id, launch, block, cell_id, started_unix_ns, other_cpu_share) VALUES (?, ?, ?, "
              "?, ?, ?)",
              run_id, block.launch, block.block, block.cell_id, block.started_unix_ns, block.other_cpu_share);
  for (const VisitRecord& visit : block.visits) {
    auto statement = prepared(
        database,
        "INSERT INTO visits (block_id, position, arm_id, previous_arm_id, warmup_steps, quiet, wall_ns, samples_ns) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        block_id, visit.position, visit.arm_id,
        visit.previous_arm_id == 0 ? std::nullopt : std::optional(visit.previous_arm_id), visit.warmup_steps,
        visit.quiet, visit.wall_ns);
    const std::string samples = encode(visit.samples_ns);
    statement.bind(8, static_cast<const void*>(samples.data()), static_cast<int>(samples.size()));
    statement.exec();
  }
}

void replace_trace(SQLite::Database& database, const TraceRecord& trace) {
  prepared(database, "DELETE FROM traces WHERE cell_id = ? AND arm_id = ?", trace.cell_id, trace.arm_id).exec();
  execute(database,
          "INSERT INTO traces (cell_id, arm_id, file, command, verdict, reason, tier, steps, steps_ns, residual_ns, "
          "perturbation, perturbation_low, perturbation_high) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
          trace.cell_id, trace.arm_id, trace.file, trace.command, trace.verdict, trace.reason, trace.tier, trace.steps,
          trace.steps_ns, trace.residual_ns, trace.perturbation, trace.perturbation_low, trace.perturbation_high);
  std::int64_t place = 0;
  for (const TraceShareRecord& share : trace.shares) {
    execute(database,
            "INSERT INTO trace_shares (cell_id, arm_id, place, kind, name, host_ns, device_ns, operators, kernels, "
            "allocations, allocated_bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            trace.cell_id, trace.arm_id, place++, share.kind, share.name, share.host_ns, share.device_ns,
            share.operators, share.kernels, share.allocations, share.allocated_bytes);
  }
}

void add_time_spent(SQLite::Database& database, std::int64_t run_id, const TimeSpentRecord& time) {
  execute(database,
          "INSERT INTO times_spent (run_id, shard, launch, arm_id, activity, ns) VALUES (?, ?, ?, ?, ?, ?) "
          "ON CONFLICT DO UPDATE SET ns = ns + excluded.ns",
          run_id, time.shard, time.launch, time.arm_id, std::string(to_string(time.activity)), time.ns);
}

void replace_quality(SQLite::Database& database, const QualityRecord& quality) {
  execute(database, "INSERT OR REPLACE INTO qualities VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", quality.arm_id,
          quality.tokens, quality.log_perplexity, quality.log_perplexity_error, quality.log_ratio,
          quality.log_ratio_error, quality.kl_divergence, quality.kl_divergence_error, quality.kl_divergence_999,
          quality.top_1_agreement, quality.top_1_agreement_error, quality.rms_probability, quality.reason);
}

void replace_completion(SQLite::Database& database, const CompletionRecord& completion) {
  execute(database,
          "INSERT OR REPLACE INTO completions (arm_id, prompt, prompt_text, class, prompt_tokens, token_ids, text) "
          "VALUES (?, ?, ?, ?, ?, ?, ?)",
          completion.arm_id, completion.prompt, completion.prompt_text, completion.prompt_class,
          completion.prompt_tokens, nlohmann::json(completion.token_ids).dump(), completion.text);
}

void replace_proof(SQLite::Database& database, const CellProofRecord& proof) {
  prepared(database, "DELETE FROM cell_proofs WHERE cell_id = ? AND request = ?", proof.cell_id, proof.request).exec();
  execute(database,
          "INSERT INTO cell_proofs (cell_id, request, batch, length, first, tokens) VALUES (?, ?, ?, ?, ?, ?)",
          proof.cell_id, proof.request, proof.batch, proof.length, nlohmann::json(proof.first).dump(),
          nlohmann::json(proof.tokens).dump());
  for (const auto& [arm_id, chosen] : proof.chosen) {
    execute(database, "INSERT INTO arm_proofs (cell_id, request, arm_id, chosen) VALUES (?, ?, ?, ?)", proof.cell_id,
            proof.request, arm_id, chosen);
  }
}

}  // namespace decodelab
