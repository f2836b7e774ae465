// The ratios of a comparison as a figure.
#pragma once

#include <optional>

#include "reports/figures/figure.h"
#include "reports/page/comparison/comparison_page.h"

namespace decodelab {

/// Draws a line per cell and arm with its interval. Returns none where no row has a ratio, or where too many rows have
/// one for the figure to be readable.
std::optional<Figure> comparison_figure(const RunComparison& comparison);

}  // namespace decodelab
