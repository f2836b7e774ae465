// Checks a cell before its first block: its memory, then its outputs, then its step time and counters in a probe.
#include "bench/measure/cell_check.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "bench/measure/steps.h"
#include "bench/measure/warmup.h"
#include "bench/plan/step_scope.h"
#include "reports/store/flags.h"

namespace decodelab {
namespace {

/// Share of the available memory that the visits of all arms may hold at once.
constexpr double kSharedMemory = 0.5;

std::string gigabytes(std::int64_t bytes) { return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9); }

/// Limits the steps of a decode cell to the model's positions: to whole periods where there is room for one, and to one
/// step at least.
std::int64_t limit_steps(const CellRecord& cell, std::int64_t steps, std::int64_t positions) {
  if (cell.phase != Phase::decode || cell.length + steps <= positions) {
    return steps;
  }
  const std::int64_t room = std::max<std::int64_t>(positions - cell.length, 1);
  return room >= kPeriodSteps ? room / kPeriodSteps * kPeriodSteps : room;
}

/// Returns whether the visits of the planned rows may be open at once: they fit into memory together, and tokens are
/// not read only at the end of a visit.
bool open_at_once(const CellRecord& cell, const std::vector<CellArmRecord>& rows, const ArmWorkers& workers,
                  std::int64_t available) {
  std::int64_t bytes = 0;
  for (const CellArmRecord& row : rows) {
    if (row.status == RowStatus::planned) {
      bytes += workers.by_arm.at(row.arm_id)->bytes_needed(cell);
    }
  }
  return !scope_of_cell(cell.phase, cell.scope).visible_end &&
         static_cast<double>(bytes) <= kSharedMemory * static_cast<double>(available);
}

/// Returns the seconds of two visits of each arm, with warm-up and timed steps.
double block_seconds(const std::vector<std::int64_t>& step_ns, const CellRecord& cell, std::int64_t steps) {
  double total = 0;
  for (const std::int64_t step : step_ns) {
    const std::int64_t warmup = cell.phase == Phase::batching ? 1 : expected_warmup_steps(step);
    total += 2 * static_cast<double>(step) * static_cast<double>(warmup + steps);
  }
  return total * 1e-9;
}

/// Makes `oom` of the planned rows whose arms need more memory than there is.
void exclude_too_large(std::vector<CellArmRecord>& rows, const CellRecord& cell, const ArmWorkers& workers,
                       std::int64_t available) {
  for (CellArmRecord& row : rows) {
    if (row.status != RowStatus::planned) {
      continue;
    }
    const Worker& worker = *workers.by_arm.at(row.arm_id);
    if (!fits(worker, cell, available)) {
      row.status = RowStatus::oom;
      row.reason = fmt::format("would need {} beyond the weights, and {} of memory are at hand",
                               gigabytes(worker.bytes_needed(cell)), gigabytes(available));
    }
  }
}

/// Verifies one arm and counts what its steps do. Returns the nanoseconds of its fastest step, or nothing where it is
/// wrong.
std::optional<std::int64_t> prove_and_count(CellArmRecord& row, const CellRecord& cell, ReferenceOutputs& reference,
                                            const ArmWorkers& workers, CellProofRecord& proof) {
  Worker& worker = *workers.by_arm.at(row.arm_id);
  const CellRecord& compared = reference.compared();
  const auto spend = [&](Activity activity, auto&& work) {
    const TimeSpan span(*workers.account, row.arm_id, activity, [&worker] { return worker.side_work(); });
    return work();
  };
  workers.started(row.arm_id);
  spend(Activity::starting, [&] { worker.start(); });
  spend(Activity::checking, [&] { verify(row, worker, reference, proof); });
  if (row.status != RowStatus::planned) {
    return std::nullopt;
  }
  if (compared.batch != cell.batch || compared.length != cell.length) {
    row.flags.push_back(fmt::format("{}b{}-l{}", kVerifiedAtFlag, compared.batch, compared.length));
  }
  const Probe probe = spend(Activity::counting, [&] { return worker.probe(cell); });
  row.peak_bytes = probe.peak_bytes;
  row.counters = probe.counters;
  row.engaged = probe.engaged;
  if (probe.engaged == false) {
    row.flags.emplace_back(kNotEngagedFlag);
    row.reason = probe.missing;
  }
  if (probe.counters.contains(kBundledTokens)) {
    row.flags.emplace_back(kTokensBundledFlag);
  }
  if (!probe.unsteady.empty()) {
    row.flags.push_back(fmt::format("{}{}", kUnsteadyFlag, probe.unsteady.front()));
  }
  return probe.step_ns;
}

/// Computes the outputs now. What it throws is thrown again where they are needed, and written into the rows there.
void compute_early(ReferenceOutputs& reference) {
  try {
    reference.get();
  } catch (const std::runtime_error&) {
    return;
  }
}

}  // namespace

CellCheck check_cell(const CellRecord& cell, std::vector<CellArmRecord> rows, const ArmWorkers& workers,
                     std::int64_t positions, const std::function<std::int64_t()>& available_memory_bytes,
                     const VisitPlan& visits) {
  const auto planned = [](const CellArmRecord& row) { return row.status == RowStatus::planned; };
  exclude_too_large(rows, cell, workers, available_memory_bytes());
  if (std::ranges::none_of(rows, planned)) {
    return {.rows = std::move(rows)};
  }
  std::map<std::string, ReferenceOutputs> references;  // by request
  for (const CellArmRecord& row : rows) {
    const std::string request = workers.request_of(row);
    if (planned(row) && !references.contains(request)) {
      compute_early(references.try_emplace(request, cell, request, workers, available_memory_bytes).first->second);
    }
  }
  const std::int64_t available = available_memory_bytes();  // The reference may have taken some.
  exclude_too_large(rows, cell, workers, available);
  std::vector<CellProofRecord> proofs;
  std::vector<std::int64_t> step_ns;
  for (CellArmRecord& row : rows) {
    if (!planned(row)) {
      continue;
    }
    ReferenceOutputs& reference = references.at(workers.request_of(row));
    auto proof = std::ranges::find(proofs, workers.request_of(row), &CellProofRecord::request);
    try {
      if (proof == proofs.end()) {
        proof = proofs.insert(proofs.end(), reference.proof());
      }
    } catch (const std::runtime_error& none) {
      row.status = RowStatus::failed;
      row.reason = none.what();
      continue;
    }
    try {
      if (const auto fastest = prove_and_count(row, cell, reference, workers, *proof)) {
        step_ns.push_back(*fastest);
      }
    } catch (const std::exception& error) {
      row = row_of_exception(row, error);
    }
  }
  if (std::ranges::none_of(rows, planned)) {
    return {.rows = std::move(rows), .proofs = std::move(proofs)};
  }
  const auto flag = [&](const char* name, const std::function<bool(const Worker&)>& only = {}) {
    for (CellArmRecord& row : rows) {
      if (planned(row) && (!only || only(*workers.by_arm.at(row.arm_id)))) {
        row.flags.emplace_back(name);
      }
    }
  };
  const std::int64_t slowest = *std::ranges::max_element(step_ns);
  const bool whole = cell.phase == Phase::batching || cell.phase == Phase::continuation;
  const std::int64_t steps = whole ? plan_whole_steps(cell.phase, slowest, visits.fewest_steps)
                                   : limit_steps(cell, plan_steps(slowest, visits.fewest_steps).steps, positions);
  if (cell.phase == Phase::decode && steps % kPeriodSteps != 0) {
    flag(kPeriodNotCoveredFlag);
  }
  std::int64_t fewest_slice_steps = 1;
  for (const auto& [id, worker] : workers.by_arm) {
    fewest_slice_steps = std::max(fewest_slice_steps, worker->fewest_slice_steps());
  }
  std::int64_t slice_steps =
      step_ns.size() > 1 ? plan_slice(steps, slowest, visits.slice_ns, fewest_slice_steps) : steps;
  const auto arms_that = [&](auto&& able) {
    return std::ranges::count_if(
        rows, [&](const CellArmRecord& row) { return planned(row) && able(*workers.by_arm.at(row.arm_id)); });
  };
  const bool at_once = visits.slice_ns > 0 && step_ns.size() > 1 && open_at_once(cell, rows, workers, available);
  if (at_once && arms_that([&](const Worker& worker) { return worker.times_rounds(cell); }) > 1) {
    slice_steps = 0;
    flag(kWholeVisitsFlag, [&](const Worker& worker) { return !worker.times_rounds(cell); });
  } else if (slice_steps < steps &&
             !(at_once && arms_that(std::mem_fn(&Worker::times_slices)) == std::ranges::count_if(rows, planned))) {
    slice_steps = steps;
    flag(kWholeVisitsFlag);
  }
  const double seconds = block_seconds(step_ns, cell, steps);
  return {.rows = std::move(rows),
          .steps = steps,
          .slice_steps = slice_steps,
          .block_seconds = seconds,
          .proofs = std::move(proofs)};
}

}  // namespace decodelab
