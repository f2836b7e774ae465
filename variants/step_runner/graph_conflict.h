// The rule of the two variants that record decode steps: what else a plan may have bound.
#pragma once

#include <string>

#include "engine/generation/graph_plan.h"

namespace decodelab {

struct EnginePlan;

/// Returns why `variant` cannot be combined with what else the plan has bound, in one sentence that names both; empty
/// if it can.
std::string graph_conflict(const std::string& variant, GraphScope scope, const EnginePlan& plan);

}  // namespace decodelab
