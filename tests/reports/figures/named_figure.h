// Finds a figure by its name.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "reports/figures/figure.h"

namespace decodelab::testing {

inline const Figure& named(const std::vector<Figure>& figures, const std::string& name) {
  const auto found = std::ranges::find(figures, name, &Figure::name);
  if (found == figures.end()) {
    throw std::out_of_range("no figure " + name);
  }
  return *found;
}

}  // namespace decodelab::testing
