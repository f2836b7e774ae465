// Sampling parameters as JSON: in the plan of a run, and in what a worker is asked for.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/sampling/sampling_parameters.h"

namespace decodelab {

/// Returns all parameters but the seed, which belongs to the run.
nlohmann::json sampling_to_json(const SamplingParameters& sampling);
/// Throws what nlohmann::json throws for a missing parameter or another type.
SamplingParameters sampling_from_json(const nlohmann::json& json);

/// Returns the names of the parameters that are not neutral: `sample`, `temperature`, `top_k`, ....
std::vector<std::string> used_parameters(const SamplingParameters& sampling);

}  // namespace decodelab
