// What became of the guesses of real text, so that it can be measured again at any shape.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace decodelab {

/// How many guesses of a row a round checked, and how many of them stood.
struct RoundCount {
  std::int64_t proposed = 0;
  std::int64_t accepted = 0;
};

/// The rounds of one completion, in their order.
using RoundCounts = std::vector<RoundCount>;

/// Parses what `generate --speculate N -o jsonl` writes: a completion a line, whose `rounds` are pairs of the guesses
/// checked and those that stood. Lines without `rounds`, and completions without a round, are passed over.
///
/// Throws std::invalid_argument, naming `name` and the line, for anything else, and where no round is left.
std::vector<RoundCounts> parse_round_trace(std::string_view text, const std::string& name);

/// Reads such a file. Throws what parse_round_trace() throws, and std::invalid_argument where there is none.
std::vector<RoundCounts> load_round_trace(const std::filesystem::path& file);

}  // namespace decodelab
