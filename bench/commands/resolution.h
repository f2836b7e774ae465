// Which differences a machine can resolve, and in what time: an A/A test of one build, in one process and in fresh
// processes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/table.h"
#include "bench/commands/commands.h"
#include "bench/commands/gate_measure.h"

namespace decodelab {

struct ResolutionRequest {
  double seconds = 60;  ///< Half for each of the two ways to measure.
  std::string model = "synthetic:tiny";
  std::string arm = "bigcode";
  std::int64_t batch = 1;
  std::int64_t length = 128;
  std::int64_t threads = 0;
};

/// Contrasts of a build with itself, as logarithms.
struct NullContrasts {
  std::vector<double> values;
  double seconds_each = 0;
};
struct Resolution {
  NullContrasts in_process;  ///< One value for each mirrored block, all in one process.
  NullContrasts relaunched;  ///< One value for each gate block of four fresh processes.
};

/// Measures both; returns nothing where it was interrupted. Runs go into a store that is removed afterwards.
std::optional<Resolution> measure_resolution(const ResolutionRequest& request,
                                             const std::function<void(double seconds_left)>& display);

/// Returns a table of the smallest effects that are found with 80 % power after half a minute and more.
Table resolution_table(const Resolution& resolution, const ResolutionRequest& request);

}  // namespace decodelab
