// The prompts of a cell, the same for every arm, engine and machine.
#pragma once

#include <cstdint>
#include <vector>

namespace decodelab {

/// `batch` rows of `length` ids drawn uniformly from the vocabulary by a counter-based generator.
std::vector<std::vector<std::int64_t>> random_prompts(std::uint64_t seed, std::int64_t batch, std::int64_t length,
                                                      std::int64_t vocabulary_size);

}  // namespace decodelab
