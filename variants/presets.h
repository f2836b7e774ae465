// Named lists of variants: the builds that the study compared.
#pragma once

#include <string>
#include <vector>

namespace decodelab {

/// Names a set of variants on top of the reference.
struct Preset {
  std::string name;
  std::string summary;                ///< One sentence.
  std::vector<std::string> variants;  ///< With parameters where they are not the defaults: `kv-grow:tokens=16`.
};

/// Returns all presets, the reference first.
const std::vector<Preset>& presets();

}  // namespace decodelab
