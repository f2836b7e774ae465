// Finds strings that end a completion in texts that grow token by token. No torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace decodelab {

/// The texts of a batch's completions, and the stop strings that are looked for in them, also where they span tokens.
///
/// The text of several tokens must be that of each, one after the other, as it is in byte-level BPE.
class StopStrings {
 public:
  /// `text_of` gives the bytes of one token. Throws std::invalid_argument for an empty string.
  StopStrings(std::vector<std::string> strings, std::function<std::string(std::int64_t)> text_of, std::size_t rows);

  /// Adds a row's next token. True where a stop string has become complete: the row's text then ends before the first
  /// that occurs in it.
  bool add(std::size_t row, std::int64_t token_id);
  const std::string& text(std::size_t row) const { return texts_.at(row); }

 private:
  std::vector<std::string> strings_;
  std::size_t longest_ = 0;
  std::function<std::string(std::int64_t)> text_of_;
  std::vector<std::string> texts_;
};

}  // namespace decodelab
