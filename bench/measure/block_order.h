// The order in which the arms visit a cell in one block: drawn anew for every block, and its own mirror image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace decodelab {

/// Returns each of the `arms` twice, as A B C C B A, with the order A B C drawn uniformly from all permutations.
///
/// The mirror cancels a drift that is linear within a block; drawing anew for each block is what keeps the sign-flip
/// test exact under any other drift. The draw depends on the four keys alone (a counter-based generator), so that a
/// block that is resumed, repeated or run by another shard has the order it was planned with, on every machine.
std::vector<std::size_t> mirrored_order(std::size_t arms, std::uint64_t seed, std::uint64_t cell, std::uint64_t launch,
                                        std::uint64_t block);

}  // namespace decodelab
