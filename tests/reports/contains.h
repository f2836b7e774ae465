// Looks into texts: an assertion that certain parts are there, which prints the text on failure, lines, and how often a
// part occurs.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace decodelab::testing {

inline ::testing::AssertionResult contains(const std::string& text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (text.find(part) == std::string::npos) {
      return ::testing::AssertionFailure() << "'" << part << "' is not in: " << text;
    }
  }
  return ::testing::AssertionSuccess();
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

inline std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

/// Text that must never reach a page as it is.
inline constexpr const char* kHostile = "</script><script>alert('1')</script>&\"`|";

}  // namespace decodelab::testing
