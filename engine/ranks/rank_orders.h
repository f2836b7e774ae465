// What the first rank of a model has the others do, as numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace decodelab {

/// Each order names a session by the number that the first rank gave it, but for `head`, `drop`, `record` and `end`.
enum class RankOrder : std::int64_t {
  open,         ///< rows, most tokens of a row
  close,        ///<
  feed,         ///< tokens, as tokens_to_numbers() writes them
  step,         ///< the next token of each row
  pass,         ///< tokens: the next one of each row, and guesses
  fill_random,  ///< length, seed, tokens of the decoder
  keep,         ///< number of what is kept
  fill,         ///< number of what was kept
  select,       ///< rows
  append,       ///< the other session
  truncate,     ///< row, length
  shrink,       ///< length
  head,         ///< rows of logits
  drop,         ///< number of what was kept
  record,       ///< 1: what the rank goes through is written to its RangeLog from now on; 0: no more
  end,          ///<
};

/// Write and read tokens of rows: for each row its number of tokens, and these. Reading throws std::invalid_argument
/// where numbers are missing.
std::vector<std::int64_t> tokens_to_numbers(std::span<const std::vector<std::int64_t>> tokens);
std::vector<std::vector<std::int64_t>> tokens_from_numbers(std::span<const std::int64_t> numbers);

}  // namespace decodelab
