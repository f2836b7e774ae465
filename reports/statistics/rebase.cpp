// Moves the baseline to another arm.
#include "reports/statistics/rebase.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace decodelab {

RunData with_baseline(RunData data, const std::string& label) {
  const auto chosen = std::ranges::find(data.arms, label, &ArmRecord::label);
  if (chosen == data.arms.end() || chosen->roofline()) {
    std::string known;
    for (const ArmRecord& arm : data.arms) {
      if (!arm.roofline()) {
        known += (known.empty() ? "" : ", ") + arm.label;
      }
    }
    throw std::invalid_argument(
        fmt::format("--baseline '{}': {}; the arms of run {} are {}", label,
                    chosen == data.arms.end() ? "the run has no such arm" : "a roofline computes nothing of the model",
                    data.run.id, known.empty() ? "none" : known));
  }
  if (chosen->baseline) {
    return data;
  }
  for (ArmRecord& arm : data.arms) {
    arm.baseline = false;
  }
  chosen->baseline = true;
  // Runs of tests and of other tools may have a plan that is no object.
  if (auto plan = parse_json_or_discard(data.run.plan_json); plan.is_object() && plan.erase("ablate")) {
    data.run.plan_json = plan.dump();
  }
  return data;
}

}  // namespace decodelab
