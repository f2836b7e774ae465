// Which checks a synthetic trace does not pass, for tests that break one thing and want one check to see it.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "profiles/trace/quality.h"
#include "tests/profiles/synthetic/synthetic.h"

namespace decodelab::testing {

/// The ids of the checks that warned or failed or left steps out, in the table's order.
inline std::vector<std::string> noticed_by(const TraceQuality& quality) {
  std::vector<std::string> ids;
  for (const TraceCheck& check : quality.checks) {
    const bool quiet = check.status == CheckStatus::passed || check.status == CheckStatus::not_applicable;
    if (!quiet) {
      ids.push_back(check.id);
    }
  }
  return ids;
}

inline const TraceCheck& check_of(const TraceQuality& quality, const std::string& id) {
  for (const TraceCheck& check : quality.checks) {
    if (check.id == id) {
      return check;
    }
  }
  throw std::out_of_range("no check " + id);
}

using Ids = std::vector<std::string>;

/// Rows in order, so that "the third kernel of step 2" means something.
inline TraceEvents sealed_events(const SyntheticShape& shape, TraceTier tier = TraceTier::causes) {
  return seal(synthetic_trace(shape, tier).events).events();
}

/// The row of the n-th operation of a step that is of that kind.
inline std::size_t operation_of_step(const TraceEvents& events, std::int32_t step, int n,
                                     DeviceOperationKind kind = DeviceOperationKind::kernel) {
  for (std::size_t row = 0; row < events.operations.size(); ++row) {
    const DeviceOperation& operation = events.operations[row];
    if (operation.step == step && operation.kind == kind && n-- == 0) {
      return row;
    }
  }
  throw std::out_of_range("no such operation");
}

}  // namespace decodelab::testing
