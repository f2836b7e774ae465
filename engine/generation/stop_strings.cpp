// Looks for stop strings where a new token can have completed one.
#include "engine/generation/stop_strings.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace decodelab {

StopStrings::StopStrings(std::vector<std::string> strings, std::function<std::string(std::int64_t)> text_of,
                         std::size_t rows)
    : strings_(std::move(strings)), text_of_(std::move(text_of)), texts_(rows) {
  for (const std::string& string : strings_) {
    if (string.empty()) {
      throw std::invalid_argument("--stop '': expected at least one character, since the empty string is everywhere");
    }
    longest_ = std::max(longest_, string.size());
  }
}

bool StopStrings::add(std::size_t row, std::int64_t token_id) {
  std::string& text = texts_.at(row);
  // What ends in the new token begins at most this far before it.
  const std::size_t begin = text.size() - std::min(text.size(), longest_ == 0 ? 0 : longest_ - 1);
  text += text_of_(token_id);
  std::size_t first = std::string::npos;
  for (const std::string& string : strings_) {
    first = std::min(first, text.find(string, begin));
  }
  if (first == std::string::npos) {
    return false;
  }
  text.resize(first);
  return true;
}

}  // namespace decodelab
