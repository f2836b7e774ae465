// Gets the model that an engine of a plan runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "engine/plan.h"

namespace decodelab {

/// Returns a model as an engine of this plan takes it: where ranks share it no weight is read, since each of them loads
/// its part. Throws as Model::load() and Model::open() do.
/// @param progress  Told the bytes that are loaded so far, and of how many; may be empty.
std::shared_ptr<const Model> model_for(const EnginePlan& plan, const std::filesystem::path& checkpoint,
                                       ElementType dtype, const std::string& device,
                                       const std::function<void(std::int64_t, std::int64_t)>& progress = {});

}  // namespace decodelab
