// Finds a figure by its name.
#pragma once

#include <string>
#include <vector>

#include "reports/figures/figure.h"

namespace decodelab::testing {

inline const Figure& named(const std::vector<Figure>& figures, const std::string& name) {
  return *std::ranges::find(figures, name, &Figure::name);
}

}  // namespace decodelab::testing
