// What a new run records of itself before its first block, whichever command began it.
#pragma once

#include <cstdint>
#include <string>

#include "bench/commands/checkpoint_source.h"
#include "bench/plan/sweep_plan.h"
#include "reports/store/record.h"

namespace decodelab {

/// Returns the command line of this process as a person would type it again.
std::string own_command();

/// Fills in what every launch needs (LaunchPlan), when the run began, and on what: build, machine, model.
void describe_run(RunData& data, const SweepRequest& request, const CheckpointSource& source);

}  // namespace decodelab
