// Runs outputs, compares them, and remembers what was chosen.
#include "bench/measure/cell_outputs.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/digest.h"
#include "bench/measure/launch_runner.h"
#include "bench/plan/cell_fill.h"
#include "reports/store/flags.h"

namespace decodelab {
namespace {

/// Share of the available memory that a cell may ask for: closed forms leave out what allocators and matrix libraries
/// keep for themselves.
constexpr double kUsableMemory = 0.9;

/// Returns the cell itself where the reference fits, else the first one that it fits into while the batch and then the
/// length are halved; nothing where it fits into none.
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

/// More than any request of phase batching is answered with.
constexpr std::int64_t kAllTokens = 1 << 20;

std::int64_t verified_steps(const CellRecord& cell) {
  if (cell.phase == Phase::batching && cell.dtype == "fp32") {
    return kAllTokens;
  }
  return begins_with_keys(cell.phase) ? kVerifiedDecodeSteps : kVerifiedPrefillSteps;
}

/// Returns a digest for each step, each followed by a space, so that the text of fewer steps is the beginning of the
/// text of more.
std::string digests_of_choices(const OutputTrace& trace) {
  std::string digests;
  for (const std::vector<std::int64_t>& step : trace.tokens) {
    digests += digest(fmt::format("{}", step)) + " ";
  }
  return digests;
}

/// Returns the reference's tokens where the arm is compared by teacher forcing, else null.
const OutputTrace* fed_to(const Worker& worker, const CellRecord& compared, const OutputTrace& expected) {
  return worker.output_rule(compared) == OutputRule::teacher_forced ? &expected : nullptr;
}

/// A later launch compares one step for so many steps of a visit.
constexpr std::int64_t kVisitStepsOfARecheck = 4;

void add_flag(CellArmRecord& row, const char* flag) {
  if (std::ranges::find(row.flags, flag) == row.flags.end()) {
    row.flags.emplace_back(flag);
  }
}

/// Returns whether the arm chooses what it chose when it was verified.
bool chooses_as_proved(Worker& worker, const CellRecord& compared, const CellProofRecord& proof, std::int64_t arm_id) {
  const auto chosen = proof.chosen.find(arm_id);
  if (chosen == proof.chosen.end()) {
    return false;
  }
  const OutputTrace fed{.first = proof.first, .tokens = proof.tokens, .logits = {}, .batch = compared.batch};
  const std::int64_t verified = std::ssize(proof.tokens);
  const std::int64_t steps = compared.phase == Phase::batching
                                 ? verified
                                 : std::clamp<std::int64_t>(compared.steps / kVisitStepsOfARecheck, 1, verified);
  const OutputTrace got = worker.choices(compared, steps, fed_to(worker, compared, fed));
  return std::ssize(got.tokens) == steps && chosen->second.starts_with(digests_of_choices(got));
}

}  // namespace

bool fits(const Worker& worker, const CellRecord& cell, std::int64_t available) {
  return static_cast<double>(worker.bytes_needed(cell)) <= kUsableMemory * static_cast<double>(available);
}

const OutputTrace& ReferenceOutputs::get() {
  if (outputs_) {
    return *outputs_;
  }
  if (!none_.empty()) {
    throw std::runtime_error(none_);
  }
  const std::int64_t steps = verified_steps(compared_);
  // What a batch that serves requests says depends on more than its cell.
  const KeptOutputs* const kept = compared_.phase == Phase::batching ? nullptr : workers_.kept;
  if (kept != nullptr) {
    const TimeSpan span(*workers_.account, 0, Activity::checking, {});
    outputs_ = kept->find(compared_, request_, steps);
  }
  if (!outputs_) {
    try {
      const CellRecord whole = compared_;
      outputs_ = compute();
      if (kept != nullptr && compared_.batch == whole.batch && compared_.length == whole.length) {
        kept->keep(whole, request_, steps, *outputs_);
      }
    } catch (const std::runtime_error& error) {
      none_ = error.what();
      throw;
    }
  }
  return *outputs_;
}

OutputTrace ReferenceOutputs::compute() {
  ReferenceArm reference;
  try {
    reference = workers_.reference(request_);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(
        fmt::format("there is no reference, so that nothing proves this arm right: {}", error.what()));
  }
  const auto fitting = cell_for_reference(compared_, *reference.worker, available_memory_bytes_());
  if (!fitting) {
    throw std::runtime_error(
        "the reference does not fit into memory at any size, so that nothing proves this arm right");
  }
  compared_ = *fitting;
  try {
    workers_.started(reference.arm);
    const TimeSpan span(*workers_.account, reference.arm, Activity::checking,
                        [&] { return reference.worker->side_work(); });
    return reference.worker->outputs(compared_, verified_steps(compared_), nullptr);
  } catch (const std::exception& error) {
    throw std::runtime_error("the reference failed here, so that nothing proves this arm right: " +
                             row_of_exception({}, error).reason);
  }
}

const OutputTrace* ReferenceOutputs::exact() {
  const bool random_keys = begins_with_keys(compared_.phase) && !cell_fill_from_string(compared_.fill).generated;
  if (!exact_tried_ && !random_keys) {
    exact_tried_ = true;
    const OutputTrace& fed = get();
    try {
      workers_.started(0);
      const std::unique_ptr<Worker> worker = workers_.exact ? workers_.exact(request_) : nullptr;
      CellRecord cell = compared_;
      cell.dtype = "fp32";
      if (worker != nullptr && fits(*worker, cell, available_memory_bytes_())) {
        worker->start();
        exact_ = worker->outputs(cell, std::ssize(fed.tokens), &fed);
      }
    } catch (const std::exception&) {
      exact_.reset();  // What the arm was compared with first stands.
    }
  }
  return exact_ ? &*exact_ : nullptr;
}

CellProofRecord ReferenceOutputs::proof() {
  const OutputTrace& expected = get();
  return {.cell_id = compared_.id,
          .request = request_,
          .batch = compared_.batch,
          .length = compared_.length,
          .first = expected.first,
          .tokens = expected.tokens};
}

void verify(CellArmRecord& row, Worker& worker, ReferenceOutputs& reference, CellProofRecord& proof) {
  OutputTrace expected = reference.get();
  const CellRecord& compared = reference.compared();
  const OutputRule rule = worker.output_rule(compared);
  if (rule == OutputRule::none) {
    return;
  }
  if (compared.phase == Phase::batching && rule == OutputRule::teacher_forced) {
    add_flag(row, kStepsComparedFlag);
  }
  if (worker.logit_bound() > 0) {
    add_flag(row, kLossyFlag);
  }
  const bool forced = rule == OutputRule::teacher_forced;
  const std::int64_t steps = std::ssize(expected.tokens);
  OutputTrace got = worker.outputs(compared, steps, fed_to(worker, compared, expected));
  if (rule == OutputRule::tokens_only) {
    expected.logits.clear();
    add_flag(row, kTokensOnlyFlag);
  }
  VerificationResult result = forced ? compare_teacher_forced(expected, got, compared.dtype, worker.logit_bound())
                                     : compare_free_running(expected, got);
  const std::string chosen = digests_of_choices(got);
  // Requests that a batch serves are answered freely, or not at all.
  if (result.near_tie && compared.phase != Phase::batching) {
    got = {};  // Logits of many rows are large.
    got = worker.outputs(compared, steps, &expected);
    if (VerificationResult beyond = compare_after_near_tie(expected, got); beyond.correct) {
      result = std::move(beyond);
      add_flag(row, kNearTieFlag);
    }
  }
  row.ties = std::max(row.ties, result.ties);
  if (forced || result.correct) {
    row.agreement = agreement_of(expected, got);
  }
  if (forced && !result.correct && compared.dtype != "fp32") {
    if (const OutputTrace* exact = reference.exact()) {
      result = compare_with_exact(*exact, expected, got, compared.dtype, worker.logit_bound());
      add_flag(row, kComparedWithFp32Flag);
    }
  }
  if (!result.correct) {
    row.status = RowStatus::incorrect;
    row.reason = result.difference;
    return;
  }
  proof.chosen[row.arm_id] = chosen;
}

std::vector<CellArmRecord> recheck_cell(const CellRecord& cell, std::vector<CellArmRecord> rows,
                                        std::vector<CellProofRecord>& proofs, const ArmWorkers& workers,
                                        const std::function<std::int64_t()>& available_memory_bytes) {
  std::map<std::string, ReferenceOutputs> references;
  for (CellArmRecord& row : rows) {
    const auto found = workers.by_arm.find(row.arm_id);
    if (!is_open(row.status) || found == workers.by_arm.end()) {
      continue;
    }
    Worker& worker = *found->second;
    const std::string request = workers.request_of(row);
    auto proof = std::ranges::find(proofs, request, &CellProofRecord::request);
    CellRecord compared = cell;
    if (proof != proofs.end()) {
      compared.batch = proof->batch;
      compared.length = proof->length;
    }
    try {
      workers.started(row.arm_id);
      const auto span = [&] {
        return TimeSpan(*workers.account, row.arm_id, Activity::checking, [&worker] { return worker.side_work(); });
      };
      {
        const TimeSpan checking = span();
        worker.start();
        if (worker.output_rule(cell) == OutputRule::none ||
            (proof != proofs.end() && chooses_as_proved(worker, compared, *proof, row.arm_id))) {
          continue;
        }
      }
      ReferenceOutputs& reference =
          references.try_emplace(request, compared, request, workers, available_memory_bytes).first->second;
      reference.get();
      if (proof == proofs.end()) {
        proof = proofs.insert(proofs.end(), reference.proof());
      }
      const TimeSpan checking = span();
      verify(row, worker, reference, *proof);
    } catch (const std::exception& error) {
      row = row_of_exception(row, error);
    }
  }
  return rows;
}

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

}  // namespace decodelab
