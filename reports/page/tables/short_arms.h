// Labels of arms that fit into a table.
#pragma once

#include <cstddef>
#include <vector>

#include "base/table.h"
#include "reports/store/record.h"

namespace decodelab {

/// Shortens labels where they make the table too wide, and says below it what each stands for. Where that is not
/// enough, columns that can be missed go first.
void shorten_arms(Table& table, std::size_t arm_column, const std::vector<ArmRecord>& arms);

}  // namespace decodelab
