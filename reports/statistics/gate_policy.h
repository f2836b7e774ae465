// What a gate lets pass, as a file: margins, looks and limits that are fixed before the first block.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/statistics/comparison.h"
#include "reports/statistics/looks.h"
#include "reports/store/record.h"

namespace decodelab {

/// What the exit code of an inconclusive gate says; its report says INCONCLUSIVE in any case.
enum class OnInconclusive { report, pass, fail };
const char* to_string(OnInconclusive choice);

/// Cells that have a margin of their own; what is not given matches every cell.
struct MarginOverride {
  std::optional<Phase> phase;
  std::optional<std::int64_t> batch;
  std::optional<std::int64_t> length;
  double margin = 0;
};

/// How cells weigh in the composite.
enum class CompositeWeights { phase_then_batch, cell };
const char* to_string(CompositeWeights weights);

/// Margins are shares of time: .03 lets 3 % pass.
struct GatePolicy {
  double decode_margin = 0.03;
  double prefill_margin = 0.05;
  double generate_margin = 0.03;
  double composite_margin = 0.015;
  std::vector<MarginOverride> overrides;  ///< The last one that matches a cell applies.
  CompositeWeights composite_weights = CompositeWeights::phase_then_batch;
  LookRule looks = gate_looks();
  /// Share of core time of other processes above which a block is void. It is larger than the 2 % of a sweep: in CI
  /// other processes always run; the test stays valid under noise and loses only power, which the report states.
  double void_share = kSaturatedShare;
  double most_void = kMostVoid;  ///< Share of a cell's blocks that may be void; beyond it the gate is invalid.
  /// Maximum number of fresh gate blocks after a look that called something slower; they must confirm it
  /// (second_look()). 0: the look alone is enough.
  std::size_t fresh_blocks = 24;
  OnInconclusive on_inconclusive = OnInconclusive::report;
  std::optional<double> time_budget_s;  ///< No look is begun that would probably end later.

  /// Returns the margin of a cell. Throws std::invalid_argument for a phase that has no margin.
  double margin_of(const CellRecord& cell) const;
};

/// One key of the file, for the manual.
struct PolicyKey {
  std::string name;      ///< `margins.decode`.
  std::string expected;  ///< What a value must be.
  std::string meaning;
};
std::vector<PolicyKey> gate_policy_keys();

/// Reads a policy; keys that are not given keep their defaults. `source` names the text in errors.
///
/// Throws std::invalid_argument with one sentence for text that is no JSON object, an unknown key (with the nearest
/// known one), a value of another type or an impossible one.
GatePolicy parse_gate_policy(std::string_view json, const std::string& source);

/// Returns the whole policy, defaults included; parse_gate_policy() reads the same policy back.
std::string to_json(const GatePolicy& policy);

/// Returns a hash of the policy and the cells, whatever their order, as 16 hexadecimal digits (half of a digest()).
/// Steps of a visit are left out, since the pilot fixes them.
std::string gate_plan_hash(const GatePolicy& policy, const std::vector<CellRecord>& cells);

/// Returns why the looks of the policy are not known to keep false alarms at 5 %; empty for the looks that were
/// checked.
std::string looks_caution(const GatePolicy& policy);

}  // namespace decodelab
