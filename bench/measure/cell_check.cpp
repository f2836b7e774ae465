// Memory first, then outputs, then a probe of time and memory: what a cell goes through before its first block.
#include "bench/measure/cell_check.h"

#include "bench/measure/launch_runner.h"
#include "bench/measure/steps.h"
#include "bench/measure/warmup.h"
#include "bench/plan/step_scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace decodelab {
namespace {

/// Part of the memory at hand that a cell may ask for: closed forms leave out what allocators and matrix libraries keep for themselves.
constexpr double kUsableMemory = 0.9;

/// Part of it that the visits of all arms may hold at once.
constexpr double kSharedMemory = 0.5;

std::string gigabytes(std::int64_t bytes) { return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9); }

bool fits(const Worker& worker, const CellRecord& cell, std::int64_t available) {
  return static_cast<double>(worker.bytes_needed(cell)) <= kUsableMemory * static_cast<double>(available);
}

/// The cell itself, or the largest one by halving the batch and then the length in which the reference fits.
std::optional<CellRecord> cell_for_reference(const CellRecord& cell, const Worker& reference, std::int64_t available) {
  CellRecord smaller = cell;
  while (!fits(reference, smaller, available)) {
    if (smaller.batch > 1) {
      smaller.batch /= 2;
    } else if (smaller.length > 1) {
      smaller.length /= 2;
    } else {
      return std::nullopt;
    }
  }
  return smaller;
}

std::int64_t verified_steps(const CellRecord& cell) {
  return cell.phase == "decode" ? kVerifiedDecodeSteps : kVerifiedPrefillSteps;
}

/// Whole periods where the model's positions leave room for one, at least one step.
std::int64_t limit_steps(const CellRecord& cell, std::int64_t steps, std::int64_t positions) {
  if (cell.phase != "decode" || cell.length + steps <= positions) {
    return steps;
  }
  const std::int64_t room = std::max<std::int64_t>(positions - cell.length, 1);
  return room >= kPeriodSteps ? room / kPeriodSteps * kPeriodSteps : room;
}

/// Compares one arm with the reference's outputs; leaves the row planned when they agree.
void verify(CellArmRecord& row, Worker& worker, const CellRecord& cell, OutputTrace expected) {
  worker.start();
  const OutputRule rule = worker.output_rule(cell);
  if (rule == OutputRule::none) {
    return;
  }
  const bool forced = rule == OutputRule::teacher_forced;
  const OutputTrace got = worker.outputs(cell, std::ssize(expected.tokens), forced ? &expected : nullptr);
  if (rule == OutputRule::tokens_only) {
    expected.logits.clear();
    row.flags.emplace_back(kTokensOnlyFlag);
  }
  const VerificationResult result =
      forced ? compare_teacher_forced(expected, got, cell.dtype) : compare_free_running(expected, got);
  row.ties = result.ties;
  if (forced || result.correct) {
    row.agreement = agreement_of(expected, got);
  }
  if (!result.correct) {
    row.status = RowStatus::incorrect;
    row.reason = result.difference;
  }
}

/// Whether the arms of the rows that are left may take turns: each can, their open visits fit into memory together, and no visit has to
/// end for its tokens to be seen.
bool take_turns(const CellRecord& cell, const std::vector<CellArmRecord>& rows, const ArmWorkers& workers,
                std::int64_t available) {
  if (cell.phase != "generate" && step_scope_from_string(cell.scope).visible_end) {
    return false;
  }
  std::int64_t bytes = 0;
  for (const CellArmRecord& row : rows) {
    if (row.status != RowStatus::planned) {
      continue;
    }
    const Worker& worker = *workers.by_arm.at(row.arm_id);
    if (!worker.takes_turns()) {
      return false;
    }
    bytes += worker.bytes_needed(cell);
  }
  return static_cast<double>(bytes) <= kSharedMemory * static_cast<double>(available);
}

/// Two visits of each arm: its warm-up and its timed steps.
double block_seconds(const std::vector<std::int64_t>& step_ns, std::int64_t steps) {
  double total = 0;
  for (const std::int64_t step : step_ns) {
    total += 2 * static_cast<double>(step) * static_cast<double>(expected_warmup_steps(step) + steps);
  }
  return total * 1e-9;
}

}  // namespace

CellArmRecord row_of_exception(CellArmRecord row, const std::exception& error) {
  const std::string_view message = error.what();
  row.reason = std::string(message.substr(0, message.find('\n')));
  if (const auto* said = dynamic_cast<const WorkerError*>(&error)) {
    row.status = said->status;
    return row;
  }
  const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                      message.find("out of memory") != std::string_view::npos ||
                      message.find("not enough memory") != std::string_view::npos;
  row.status = memory ? RowStatus::oom : RowStatus::failed;
  return row;
}

CellCheck check_cell(const CellRecord& cell, std::vector<CellArmRecord> rows, const ArmWorkers& workers,
                     std::int64_t positions, const std::function<std::int64_t()>& available_memory_bytes,
                     const VisitPlan& visits) {
  const std::int64_t available = available_memory_bytes();
  const auto planned = [](const CellArmRecord& row) { return row.status == RowStatus::planned; };
  for (CellArmRecord& row : rows) {
    if (!planned(row)) {
      continue;
    }
    const Worker& worker = *workers.by_arm.at(row.arm_id);
    if (!fits(worker, cell, available)) {
      row.status = RowStatus::oom;
      row.reason = fmt::format("would need {} beyond the weights, and {} of memory are at hand",
                               gigabytes(worker.bytes_needed(cell)), gigabytes(available));
    }
  }
  if (std::ranges::none_of(rows, planned)) {
    return {.rows = std::move(rows)};
  }

  std::optional<OutputTrace> expected;
  std::optional<CellRecord> compared;
  std::string no_reference =
      "the reference does not fit into memory at any size, so that nothing proves this arm right";
  if (workers.reference == nullptr) {
    no_reference = "there is no reference, so that nothing proves this arm right: " + workers.no_reference;
  } else {
    compared = cell_for_reference(cell, *workers.reference, available);
  }
  if (compared) {
    try {
      workers.started(workers.reference_arm);
      expected = workers.reference->outputs(*compared, verified_steps(*compared), nullptr);
    } catch (const std::exception& error) {
      no_reference =
          "the reference failed here, so that nothing proves this arm right: " + row_of_exception({}, error).reason;
    }
  }

  std::vector<std::int64_t> step_ns;
  for (CellArmRecord& row : rows) {
    if (!planned(row)) {
      continue;
    }
    if (!expected) {
      row.status = RowStatus::failed;
      row.reason = no_reference;
      continue;
    }
    Worker& worker = *workers.by_arm.at(row.arm_id);
    try {
      workers.started(row.arm_id);
      verify(row, worker, *compared, *expected);
      if (!planned(row)) {
        continue;
      }
      if (compared->batch != cell.batch || compared->length != cell.length) {
        row.flags.push_back(fmt::format("verified-at-b{}-l{}", compared->batch, compared->length));
      }
      const Probe probe = worker.probe(cell);
      row.peak_bytes = probe.peak_bytes;
      row.counters = probe.counters;
      row.engaged = probe.engaged;
      if (probe.engaged == false) {
        row.flags.emplace_back("not-engaged");
        row.reason = probe.missing;
      }
      if (!probe.unsteady.empty()) {
        row.flags.push_back(fmt::format("{}{}", kUnsteadyFlag, probe.unsteady.front()));
      }
      step_ns.push_back(probe.step_ns);
    } catch (const std::exception& error) {
      row = row_of_exception(row, error);
    }
  }
  if (std::ranges::none_of(rows, planned)) {
    return {.rows = std::move(rows)};
  }
  const auto flag = [&](const char* name) {
    for (CellArmRecord& row : rows) {
      if (planned(row)) {
        row.flags.emplace_back(name);
      }
    }
  };
  const std::int64_t slowest = *std::ranges::max_element(step_ns);
  const std::int64_t steps = limit_steps(cell, plan_steps(slowest, visits.fewest_steps).steps, positions);
  if (cell.phase == "decode" && steps % kPeriodSteps != 0) {
    flag(kPeriodNotCoveredFlag);
  }
  std::int64_t fewest_turn_steps = 1;
  for (const auto& [id, worker] : workers.by_arm) {
    fewest_turn_steps = std::max(fewest_turn_steps, worker->fewest_turn_steps());
  }
  std::int64_t turn_steps = step_ns.size() > 1 ? plan_turn(steps, slowest, visits.turn_ns, fewest_turn_steps) : steps;
  if (turn_steps < steps && !take_turns(cell, rows, workers, available)) {
    turn_steps = steps;
    flag(kWholeVisitsFlag);
  }
  const double seconds = block_seconds(step_ns, steps);
  return {.rows = std::move(rows), .steps = steps, .turn_steps = turn_steps, .block_seconds = seconds};
}

}  // namespace decodelab
