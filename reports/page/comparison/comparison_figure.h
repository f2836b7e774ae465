// The ratios of a comparison as a figure.
#pragma once

#include <optional>

#include "reports/figures/figure.h"
#include "reports/page/comparison/comparison_page.h"

namespace decodelab {

/// A line per cell and arm with its interval; nothing where no row has a ratio, or more rows have one than can be read.
std::optional<Figure> comparison_figure(const RunComparison& comparison);

}  // namespace decodelab
