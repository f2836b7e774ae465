// How the cache of a decode cell is filled: the words that stand in a cell's `fill`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace decodelab {

/// `generated` (by a prefill of the cell's prompts), or `random`. Of a model with an encoder, the random fill has the
/// cell's length of encoded tokens, and so many of the decoder's own: `random:32` says how many, `random` means 8.
struct CellFill {
  bool generated = false;
  std::int64_t decoder_tokens;
};

/// Parses a fill. Throws std::invalid_argument, naming the forms that are known, for any other text.
CellFill cell_fill_from_string(std::string_view text);
/// Returns a fill without its number: what a worker says that it can do.
std::string kind_of_fill(const CellFill& fill);

}  // namespace decodelab
