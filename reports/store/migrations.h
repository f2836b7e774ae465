// The schema of the store as a list of SQL steps: step i takes a file from schema i to schema i + 1.
#pragma once

#include <span>

namespace decodelab {

/// `PRAGMA application_id` of every store: "dLab" in ASCII, so that `file` and we tell a store from any other SQLite
/// file.
inline constexpr int kStoreApplicationId = 0x644c6162;

/// All steps, oldest first. A released step is never edited: a change of the schema is a new step at the end.
std::span<const char* const> migration_steps();

}  // namespace decodelab
