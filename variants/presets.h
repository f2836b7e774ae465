// Named lists of variants: the builds that the study compared.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/plan.h"

namespace decodelab {

/// Names a set of variants on top of the reference.
struct Preset {
  std::string name;
  std::string summary;                ///< One sentence.
  std::vector<std::string> variants;  ///< With parameters where they are not the defaults: `kv-grow:tokens=16`.
};

/// Returns all presets, the reference first.
const std::vector<Preset>& presets();

/// Returns `plan` with the variants of a preset bound. Throws std::invalid_argument for a name that is none.
EnginePlan bind_preset(std::string_view name, EnginePlan plan);
/// Returns the plan of a preset.
inline EnginePlan preset_plan(std::string_view name) { return bind_preset(name, reference_plan()); }

}  // namespace decodelab
